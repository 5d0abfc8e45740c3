module example.com/net

go 1.25
