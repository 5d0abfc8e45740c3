package stock

// Stock is how many pieces of an article there are.
type Stock struct {
	Article string `json:"article"`
	Count   int    `json:"count,omitempty"`
}

// Of returns the stock of an article.
func Of(article string, counts map[string]int) Stock {
	return Stock{article, counts[article]}
}
