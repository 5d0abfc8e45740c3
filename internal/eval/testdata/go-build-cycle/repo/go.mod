module example.com/trade

go 1.25
