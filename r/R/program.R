# How R talks to the program: find it, pass arguments on, show its progress, and turn its errors into conditions.

oldest_program <- "0.2.0"
checked <- new.env(parent = emptyenv())

#' The command that starts the program: the option `unround.program` (several words are allowed), the environment
#' variable UNROUND, or `unround` on the PATH.
program <- function() {
  named <- getOption("unround.program", Sys.getenv("UNROUND"))
  if (any(nzchar(named))) named else Sys.which("unround")
}

available <- function() {
  tryCatch({ program_checked(); TRUE }, unround_error = function(e) FALSE)
}

program_checked <- function() {
  command <- unname(program())
  if (!any(nzchar(command))) {
    fail("unround_not_found", "The program unround was not found. Install it (pip install unround), and if it is not on the PATH, ",
         "set options(unround.program = \"/path/to/unround\") or the environment variable UNROUND.")
  }
  id <- paste(command, collapse = " ")
  if (is.null(checked[[id]])) {
    answer <- tryCatch(processx::run(command[1], c(command[-1], "--version"), error_on_status = FALSE),
                       error = function(e) fail("unround_not_found", "The program ", id, " cannot be started: ", conditionMessage(e)))
    version <- sub("^unround +", "", trimws(answer$stdout))
    if (answer$status != 0 || !grepl("^[0-9.]+", version)) fail("unround_not_found", id, " is not the program unround.")
    if (compareVersion(sub("[^0-9.].*", "", version), oldest_program) < 0) {
      fail("unround_not_found", "This package needs unround ", oldest_program, " or newer; ", id, " is ", version, ".")
    }
    checked[[id]] <- version
  }
  command
}

fail <- function(class, ..., status = NULL) {
  stop(structure(class = c(class, "unround_error", "error", "condition"),
                 list(message = paste0(...), call = NULL, status = status)))
}

#' Options as the command line wants them: `base = 5` is `--base 5`, `clamp = TRUE` is `--clamp`, a vector repeats the option.
flags <- function(options) {
  if (length(options) && (is.null(names(options)) || any(!nzchar(names(options))))) {
    fail("unround_input_error", "Options have names, such as base = 5.")
  }
  unlist(lapply(names(options), function(name) {
    value <- options[[name]]
    flag <- paste0("--", gsub("_", "-", name, fixed = TRUE))
    if (is.null(value) || isFALSE(value)) NULL
    else if (isTRUE(value)) flag
    else as.vector(rbind(flag, vapply(value, argument, "")))
  }))
}

argument <- function(value) if (is.numeric(value)) format(value, digits = 15, scientific = FALSE, trim = TRUE) else as.character(value)

#' A table as a path: data frames are written as CSV into a folder that lives as long as the session does.
table_path <- function(x, name = "table") {
  if (is.character(x) && length(x)) return(path.expand(x))
  if (inherits(x, "unround") && !is.null(x$folder)) return(x$folder)
  if (is.data.frame(x)) {
    path <- file.path(new_folder(), paste0(name, ".csv"))
    write.csv(x, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
    return(path)
  }
  fail("unround_input_error", "A table is a data frame or the path of a file.")
}

new_folder <- function() {
  folder <- tempfile("unround-")
  dir.create(folder)
  folder
}

#' Run a command with --json and return what it prints. `decided` are the exit codes that are answers, not failures.
ask <- function(command, arguments, decided = 0L) {
  start <- program_checked()
  shown <- getOption("unround.progress", interactive())
  words <- character()
  answer <- processx::run(start[1], c(start[-1], command, "--json", arguments), error_on_status = FALSE, encoding = "UTF-8",
                          stderr_callback = function(text, process) {
                            words <<- c(words, text)
                            if (shown) message(text, appendLF = FALSE)
                          })
  if (!answer$status %in% decided) {
    said <- paste(words, collapse = "")
    said <- if (grepl("error: ", said, fixed = TRUE)) sub("(?s)^.*?error: ", "", said, perl = TRUE) else said
    kind <- if (identical(answer$status, 2L)) "unround_input_error" else if (identical(answer$status, 3L)) "unround_fault" else "unround_failed"
    fail(kind, if (nzchar(trimws(said))) trimws(said) else paste("unround ended with exit code", answer$status), status = answer$status)
  }
  # A list of objects becomes a data frame; numbers that do not fit an integer stay numbers.
  jsonlite::fromJSON(answer$stdout, simplifyVector = TRUE, simplifyMatrix = FALSE)
}
