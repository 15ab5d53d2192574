//! The filter of a command: read, compiled, and printed where only that is asked for.

use std::path::Path;

use super::print::{print_coloured, say};
use super::{Context as _, Exit, Failure};
use tscap_cli::{FilterForm, FilterSource};
use tscap_filter::ebpf::Instruction;
use tscap_filter::translate::{FrameAccess, SCRATCH_BYTES, translate};
use tscap_filter::{Ancillary, Filter, HostName, Operation, ebpf_listing};

/// Expressions longer than this take libpcap's optimiser long, bytes.
const LONG: usize = 4_000;

/// Reads and compiles a filter.
pub(super) fn compile(source: &FilterSource) -> Result<Filter, Failure> {
    match source {
        FilterSource::Expression(text) => expression(text),
        FilterSource::File(path) => expression(&expression_in(path)?),
        FilterSource::Bytecode(path) => {
            let text = read(path, "the compiled filter")?;
            Filter::from_bytecode(&text, &path.display().to_string())
        }
    }
}

fn expression(text: &str) -> Result<Filter, Failure> {
    if text.len() > LONG {
        say("compiling the filter: libpcap takes seconds for hundreds of hosts");
    }
    Filter::from_expression(text)
}

/// Says what the names in a filter stand for. Asks the resolver once more.
pub(super) fn say_addresses(filter: &Filter) {
    for HostName { name, addresses } in filter.host_names() {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        say(&format!("filter: {name} is {}", addresses.join(", ")));
    }
}

/// Reads and compiles a filter for packets of a file, of which nothing is known but bytes, length and direction.
pub(super) fn compile_for_file(source: &FilterSource) -> Result<Filter, Failure> {
    let filter = compile(source)?;
    if filter.asks_for_netmask {
        return Err(Failure::new(format!(
            "cannot filter a file by {:?}: it asks for the netmask of an interface, which no file has",
            filter.expression
        ))
        .hint("name the broadcast address: dst host 192.0.2.255"));
    }
    let asks_for_interface = filter.program.instructions().iter().any(|it| {
        matches!(it.operation(), Operation::LoadAbsolute(_))
            && Ancillary::at(it.k) == Some(Ok(Ancillary::Interface))
    });
    if !asks_for_interface {
        Ok(filter)
    } else {
        Err(Failure::new(format!(
        "cannot filter a file by {:?}: it asks for the number of an interface, which no file has",
        filter.expression
    ))
    .hint("ifindex is for captures"))
    }
}

pub(super) fn show(source: &FilterSource, form: FilterForm) -> Result<Exit, Failure> {
    let filter = compile(source)?;
    let text = match form {
        FilterForm::Listing => filter.program.listing(),
        FilterForm::C => filter.program.c_code(),
        FilterForm::Numbers => filter.program.decimal(),
        FilterForm::Ebpf => ebpf_listing(&ebpf(&filter)?),
    };
    print_coloured(&text)?;
    Ok(Exit::Success)
}

/// As in a program that uses no other stack than the filter's.
fn ebpf(filter: &Filter) -> Result<Vec<Instruction>, Failure> {
    let scratch = -(SCRATCH_BYTES as i16);
    let code = translate(&filter.program, &FrameAccess::XDP, scratch);
    code.context(format!(
        "cannot translate the filter {:?}",
        filter.expression
    ))
}

fn expression_in(path: &Path) -> Result<String, Failure> {
    let text = without_comments(&read(path, "the filter")?);
    if text.is_empty() {
        return Err(
            Failure::new(format!("{} has no filter in it", path.display()))
                .hint("leave -F out to take every frame"),
        );
    }
    Ok(text)
}

/// The words of a filter's file, without what follows a `#` on a line: tcpdump reads it so, and
/// libpcap knows no such sign.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn read(path: &Path, what: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.context(format!("cannot read {what} in {}", path.display()));
    text.map_err(|failure| {
        failure.hint(
            "-F takes a file with an expression, as tcpdump's does, and --filter-bytecode one with \
             what tcpdump -ddd prints; the capture itself is always pcapng",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_in_a_file_are_no_part_of_the_filter() {
        let text = "# the servers\ntcp port 443 # https\nor tcp port 80\n#end";
        assert_eq!(without_comments(text), "tcp port 443 \nor tcp port 80");
        assert_eq!(without_comments(" # nothing\n"), "");
    }
}
