"""Publishing more safely: a table of true counts becomes a release, under any mechanism of the library."""
