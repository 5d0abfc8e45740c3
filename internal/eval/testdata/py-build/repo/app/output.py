def show(words)
    for word in words:
        print(word)
