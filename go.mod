module github.com/yaya-ai/yaya

go 1.26
