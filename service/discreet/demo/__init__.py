"""What `discreet serve --demo` serves: a small catalogue of films that nobody has made yet."""
