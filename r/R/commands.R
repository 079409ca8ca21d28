# One function per command. Each returns a list of class c("unround_COMMAND", "unround"): $table is the data frame that
# matters most, $json everything that the program said, $folder where it wrote, if it wrote.

result <- function(command, json, table, folder = NULL) {
  structure(list(table = table, json = json, folder = folder), class = c(paste0("unround_", command), "unround"))
}

frame <- function(x) if (is.data.frame(x)) x else data.frame()

solve <- function(a, ...) {
  if (!is.character(a)) return(base::solve(a, ...))
  json <- ask("solve", c(flags(list(...)), "--", a), decided = 0:1)
  result("solve", json, frame(json$cells))
}

check <- function(x, ...) {
  json <- ask("check", c(table_path(x), flags(list(...))))
  result("check", json, frame(json$sums))
}

audit <- function(x, out = file.path(new_folder(), "audit"), ...) {
  json <- ask("audit", c(table_path(x), "--out", out, flags(list(...))))
  result("audit", json, read.csv(file.path(out, "findings.csv"), check.names = FALSE, encoding = "UTF-8"), out)
}

explain <- function(audit, area, characteristic, ...) {
  json <- ask("explain", c(table_path(audit), flags(list(...)), "--", area, characteristic))
  pairs <- do.call(rbind, lapply(json$distribution, function(pair) c(pair[[1]], pair[[2]])))
  result("explain", json, data.frame(count = pairs[, 1], probability = pairs[, 2]))
}

review <- function(x, out = file.path(new_folder(), "review"), truth = NULL, ...) {
  truth <- if (!is.null(truth)) table_path(truth, "truth")
  json <- ask("review", c(table_path(x, "draft"), "--out", out, flags(list(truth = truth, ...))), decided = c(0L, 4L, 5L, 6L))
  result("review", json, frame(json$cells), out)
}

protect <- function(x, out = file.path(new_folder(), "protected"), ...) {
  path <- table_path(x)
  json <- ask("protect", c(path, "--out", out, flags(list(...))))
  published <- file.path(out, "published", basename(path))
  result("protect", json, if (is.data.frame(x)) read.csv(published, check.names = FALSE, encoding = "UTF-8") else data.frame(), out)
}

compare <- function(truth = NULL, ...) {
  truth <- if (!is.null(truth)) table_path(truth, "truth")
  json <- ask("compare", flags(list(truth = truth, ...)))
  result("compare", json, frame(json$mechanisms))
}

reconcile <- function(x, out = file.path(new_folder(), "reconciled"), ...) {
  path <- table_path(x)
  json <- ask("reconcile", c(path, "--out", out, flags(list(...))))
  files <- list.files(out, pattern = "[.]csv$", full.names = TRUE)
  result("reconcile", json, if (is.data.frame(x) && length(files)) read.csv(files[1], check.names = FALSE, encoding = "UTF-8") else data.frame(), out)
}
