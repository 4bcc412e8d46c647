"""The desk: a local web application over the public API, in which a person makes a story into a storyboard by hand."""
