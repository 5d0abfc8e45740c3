module example.com/mail

go 1.25

require example.com/lib v0.0.0

replace example.com/lib => ../lib
