# What a result looks like: its headline, its most important frame, and one picture in the colours of the report.

colours <- c(proved = "#a01d21", conditional = "#d55a16", likely = "#c08300", open = "#8a949c", ink = "#1d2328")

plural <- function(n, noun) paste(format(n, big.mark = ","), if (n == 1) noun else paste0(noun, "s"))

headline <- function(x) {
  json <- x$json
  switch(sub("^unround_", "", class(x)[1]),
    solve = if (!isTRUE(json$feasible)) "No true counts fit." else paste0(plural(json$solutions, "solution"), " (", json$method, ")."),
    check = paste0(plural(json$areas, "area"), ", ", plural(json$columns, "column"), ", ", plural(NROW(json$sums), "sum"),
                   "; the data and the rounding: ", json$fit$verdict, "."),
    audit = paste0(plural(json$proved, "count"), " proved, ", json$conditional, " conditional, ", json$likely, " likely, of ",
                   plural(json$cells_published, "published count"), "."),
    explain = paste0("Published ", json$published, ": ", json$low, " to ", json$high, " is possible; ", json$value, " is likeliest (",
                     round(100 * json$probability), "%), ", json$kind, "."),
    review = paste0(toupper(json$decision), if (NROW(json$unsettled)) paste0(": ", plural(NROW(json$unsettled), "matter"), " to settle"), "."),
    protect = paste0(json$sentence, " Mean error ", signif(tail(json$steps$mean_error, 1), 3), "."),
    compare = paste0(plural(nrow(x$table), "way"), " of publishing, ", plural(json$areas, "area"), "."),
    reconcile = paste0(json$sums_off_before, " sums did not add up, ", json$sums_off_after, " do not now; mean error ",
                       signif(json$mean_error_published, 3), " before, ", signif(json$mean_error, 3), " after."))
}

plain_columns <- function(table) table[!vapply(table, is.list, TRUE)]

print.unround <- function(x, n = 10, ...) {
  cat(headline(x), "\n", sep = "")
  table <- plain_columns(x$table)
  if (nrow(table)) print(head(table, n), row.names = FALSE, ...)
  if (nrow(table) > n) cat("... and ", plural(nrow(table) - n, "row"), " more: as.data.frame() has all.\n", sep = "")
  if (!is.null(x$folder)) cat("Files: ", x$folder, "\n", sep = "")
  invisible(x)
}

summary.unround <- function(object, ...) {
  cat(headline(object), "\n", sep = "")
  plain <- Filter(function(value) is.atomic(value) && length(value) == 1 && !is.na(value), object$json)
  invisible(data.frame(what = names(plain), value = vapply(plain, as.character, ""), row.names = NULL))
}

as.data.frame.unround <- function(x, ...) x$table

plot.unround <- function(x, ...) {
  what <- sub("^unround_", "", class(x)[1])
  kinds <- c("proved", "conditional", "likely")
  bars <- switch(what,
    solve = setNames(x$table$probability, x$table$name),
    audit = unlist(x$json[kinds]),
    explain = setNames(x$table$probability, x$table$count),
    review = table(factor(x$table$claim, levels = c("unrounded", kinds))),
    compare = setNames(x$table$guessed, x$table$name),
    reconcile = c(published = x$json$mean_error_published, reconciled = x$json$mean_error),
    stop("There is no picture of a result of ", what, "().", call. = FALSE))
  fill <- if (what == "audit") colours[kinds] else if (what == "review") colours[c("ink", kinds)] else colours[["likely"]]
  label <- switch(what, solve = "Probability of the likeliest count", explain = "Probability", compare = "Share of counts guessed right",
                  reconcile = "Mean error per count", "Counts")
  barplot(bars, col = fill, border = NA, las = 1, ylab = label, main = headline(x), cex.main = 0.9, ...)
  invisible(x)
}
