//! The filter of a capture, by tcpdump's and dumpcap's options.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Where a filter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterSource {
    /// An expression of pcap-filter(7).
    Expression(String),
    /// A file that holds such an expression.
    File(PathBuf),
    /// A file that holds a compiled filter, as `tcpdump -ddd` prints it.
    Bytecode(PathBuf),
}

/// How to print a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterForm {
    /// Classic BPF, one instruction a line, for people.
    Listing,
    /// Classic BPF as a part of a program in C.
    C,
    /// Classic BPF as decimal numbers.
    Numbers,
    /// What the kernel runs.
    Ebpf,
}

/// Which frames to take.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(super) struct FilterArgs {
    /// Take only the frames that match, as tcp port 443 (pcap-filter(7))
    ///
    /// Quotes are needed where the shell would read the expression, as with brackets: 'tcp port
    /// 443 and (host 10.0.0.1 or host 10.0.0.2)'.
    #[arg(value_name = "EXPRESSION")]
    expression: Vec<String>,

    /// The same, in one argument (dumpcap's option)
    #[arg(short = 'f', value_name = "EXPRESSION")]
    capture_filter: Option<String>,

    /// Read the expression from this file
    #[arg(short = 'F', value_name = "FILE")]
    filter_file: Option<PathBuf>,

    /// Take only the frames that match a compiled filter in this file, as tcpdump -ddd
    /// prints it: needs no libpcap here
    #[arg(long, value_name = "FILE")]
    filter_bytecode: Option<PathBuf>,
}

/// Whether to print the filter only.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct ShowFilterArgs {
    /// Print the compiled filter and exit: -d for people, -dd for C, -ddd as numbers,
    /// all as tcpdump does. Needs neither root nor an interface
    #[arg(short = 'd', action = ArgAction::Count)]
    dump: u8,

    /// Print the filter as the kernel runs it, in the place of a call in the XDP program,
    /// and exit
    #[arg(long)]
    dump_ebpf: bool,
}

impl FilterArgs {
    /// The one that is given.
    pub fn into_source(self) -> Option<FilterSource> {
        let words = (!self.expression.is_empty()).then(|| self.expression.join(" "));
        let expression = words.or(self.capture_filter).map(FilterSource::Expression);
        let file = self.filter_file.map(FilterSource::File);
        let bytecode = self.filter_bytecode.map(FilterSource::Bytecode);
        expression.or(file).or(bytecode)
    }
}

impl ShowFilterArgs {
    /// How to print it, if that is asked for.
    pub fn form(&self) -> Option<FilterForm> {
        match (self.dump, self.dump_ebpf) {
            (_, true) => Some(FilterForm::Ebpf),
            (0, _) => None,
            (1, _) => Some(FilterForm::Listing),
            (2, _) => Some(FilterForm::C),
            _ => Some(FilterForm::Numbers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Plan};
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        let words = ["tscap"].into_iter().chain(line.split(' '));
        let plan = Cli::plan(words.map(Into::into));
        plan.map_err(|error| error.to_string())
    }

    fn source(line: &str) -> Option<FilterSource> {
        match plan(line) {
            Ok(Plan::Capture(plan)) => plan.filter,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_expression_stands_where_tcpdump_takes_it() {
        let expression = |text: &str| Some(FilterSource::Expression(text.into()));
        for (line, wanted) in [
            ("-i a -w f", None),
            ("-i a -w f tcp port 443", expression("tcp port 443")),
            ("capture -i a tcp port 443 -w f", expression("tcp port 443")),
            ("-nn not port 22 -i a -w f", expression("not port 22")),
            ("-i a -w f -- -1 < ip[0]", expression("-1 < ip[0]")),
            ("-i a -w f -f udp", expression("udp")),
            ("-i a -w f -F x", Some(FilterSource::File("x".into()))),
            (
                "-i a -w f --filter-bytecode x",
                Some(FilterSource::Bytecode("x".into())),
            ),
        ] {
            assert_eq!(source(line), wanted, "{line}");
        }
        for line in [
            "-F x udp",
            "-f udp tcp",
            "--filter-bytecode x -F y",
            "-f a -f b",
        ] {
            let error = plan(&format!("-i a -w f {line}")).unwrap_err();
            assert!(error.contains("cannot be used"), "{line}: {error}");
        }
    }

    #[test]
    fn a_filter_is_printed_without_an_interface() {
        for (line, form) in [
            ("-d udp", FilterForm::Listing),
            ("-dd udp", FilterForm::C),
            ("capture -ddd udp", FilterForm::Numbers),
            ("-dddd udp", FilterForm::Numbers),
            ("--dump-ebpf udp", FilterForm::Ebpf),
            ("-i a -w f -d udp", FilterForm::Listing),
        ] {
            let wanted = Plan::ShowFilter {
                filter: FilterSource::Expression("udp".into()),
                form,
            };
            assert_eq!(plan(line), Ok(wanted), "{line}");
        }
        assert!(plan("-d --dump-ebpf udp").is_err());
    }
}
