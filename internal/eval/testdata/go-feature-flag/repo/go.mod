module example.com/head

go 1.25
