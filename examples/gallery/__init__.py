"""Small scripts that each draw one picture of the bundled flights; docs/gallery.md shows them."""
