//! Writes the man pages and the shell completions into the folders `man` and
//! `completions` of the folder that is named: what `cargo xtask man` runs.

mod completions;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::{Arg, Command, CommandFactory as _};
use clap_mangen::Man;
use tscap_cli::{Cli, GROUPS, examples};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("a folder to write into"));
    let [man, shells] = ["man", "completions"].map(|name| folder.join(name));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&shells)?;

    // `tscap help capture` shows what tscap-capture(1) shows.
    let mut tscap = Cli::command().disable_help_subcommand(true);
    tscap.build();
    let codes = behind_examples(&tscap);
    write_page(&tscap, &codes, &man)?;
    for subcommand in tscap.get_subcommands() {
        write_page(subcommand, &codes, &man)?;
    }
    completions::write(&shells)
}

/// The sections are in the order of man-pages(7). A command that says nothing of its exit
/// codes has those that are `usual`.
fn write_page(command: &Command, usual: &str, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let version = concat!("tscap ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone())
        .title(name)
        .source(version)
        .manual("tscap");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    page.extend(options_section(&man, command)?);
    if command.has_subcommands() {
        page.extend(commands_section(command).bytes());
    }
    page.extend(b".SH EXAMPLES\n");
    for (line, does) in examples::of(command.get_name()) {
        let [line, does] = [line, does].map(|it| it.replace('-', "\\-"));
        page.extend(format!(".TP\n.B {line}\n{does}\n").bytes());
    }
    let own = behind_examples(command);
    let more = if own.is_empty() { usual } else { &own };
    let (output, codes) = more.split_once("Exit codes: ").expect("it has exit codes");
    for (title, text) in [("OUTPUT", output), ("EXIT STATUS", codes)] {
        if !text.is_empty() {
            let text = text.trim().replace('-', "\\-");
            page.extend(format!(".SH \"{title}\"\n{text}\n").bytes());
        }
    }
    if !command.has_subcommands() {
        page.extend(b".SH \"SEE ALSO\"\n.BR tscap (1)\n");
    }
    fs::write(folder.join(man.get_filename()), page)
}

/// The options, with the headings of the help as subsections.
fn options_section(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    let mut options = String::from_utf8(options).map_err(io::Error::other)?;
    let headings = command.get_arguments().filter_map(Arg::get_help_heading);
    for heading in headings {
        let upper = heading.to_uppercase();
        let section = format!("\n.SS \"{heading}\"\n");
        for rendered in [format!("\n.SH {upper}\n"), format!("\n.SH \"{upper}\"\n")] {
            options = options.replace(&rendered, &section);
        }
    }
    Ok(options.into_bytes())
}

/// The commands in their groups.
fn commands_section(tscap: &Command) -> String {
    let mut section = ".SH COMMANDS\n".to_owned();
    for (title, names) in GROUPS {
        section += &format!(".SS \"{title}\"\n");
        for name in *names {
            let command = tscap.find_subcommand(name).expect("a command");
            let about = command.get_about().map(ToString::to_string);
            let about = about.expect("what it is for").replace('-', "\\-");
            section += &format!(".TP\n.BR tscap\\-{name} (1)\n{about}\n");
        }
    }
    section
}

/// What the help of a command says behind its options and examples.
fn behind_examples(command: &Command) -> String {
    let help = command.get_after_long_help().expect("examples").to_string();
    let examples = examples::text(command.get_name());
    let more = help.strip_prefix(&examples).expect("examples come first");
    more.trim().to_owned()
}
