//! Writes the man pages and the shell completions into the folders `man` and
//! `completions` of the folder that is named: what `cargo xtask man` runs.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::builder::StyledStr;
use clap::{ArgGroup, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use tscap::cli::Cli;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("a folder to write into"));
    let [man, completions] = ["man", "completions"].map(|name| folder.join(name));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;

    // `tscap help capture` shows what tscap-capture(1) shows.
    let mut tscap = Cli::command().disable_help_subcommand(true);
    tscap.build();
    let codes = tscap.get_after_long_help().expect("the exit codes");
    write_page(&tscap, codes, &man)?;
    for subcommand in tscap.get_subcommands() {
        write_page(subcommand, codes, &man)?;
    }

    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut completed(), "tscap", &completions)?;
    }
    Ok(())
}

/// The sections are in the order of man-pages(7). A command that says nothing of its exit
/// codes has those that are `usual`.
fn write_page(command: &Command, usual: &StyledStr, folder: &Path) -> io::Result<()> {
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
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let more = command.get_after_long_help().unwrap_or(usual).to_string();
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

/// The commands without the hidden options: those of tcpdump and dumpcap that
/// `tscap capture` answers are not to be proposed.
fn completed() -> Command {
    let mut tscap = Cli::command();
    let names = tscap.get_subcommands().map(|it| it.get_name().to_owned());
    for name in names.collect::<Vec<_>>() {
        tscap = tscap.mut_subcommand(name, |all| {
            let visible = all.get_arguments().filter(|it| !it.is_hide_set()).cloned();
            // Options name groups; which options are in them is nothing to a completion.
            let groups = all
                .get_groups()
                .map(|it| ArgGroup::new(it.get_id().clone()));
            let groups: Vec<_> = groups.collect();
            let about = all.get_about().cloned().unwrap_or_default();
            // clap wants a name for ever, unless it has a feature that tscap lacks.
            let name: &'static str = all.get_name().to_owned().leak();
            Command::new(name)
                .about(about)
                .args(visible.collect::<Vec<_>>())
                .groups(groups)
        });
    }
    tscap
}
