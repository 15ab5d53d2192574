//! `tscap report`: a comparison, a sweep, measurements of delays or a clock's log drawn
//! again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::measuring::layout;
use super::print::{print, say};
use super::{Context, Exit, Failure, Hint as _};
use tscap_cli::ReportPlan;
use tscap_delay::schema::Measurement;
use tscap_document::Document;
use tscap_host::whole_file::{is_same, write_whole};
use tscap_references::log::{Digest, Line, LogReader, is_header};
use tscap_report::saved::Saved;
use tscap_report::{Papers, clock_document, delay_document};

const SAVED: &str = "give a file that `tscap compare --json`, `tscap loss --json`, `tscap delay --json`, `tscap \
     qos --json`, `tscap counters --json` or `tscap clock --log` wrote";
const OF_PAPERS: &str = "give --paper what `tscap compare --json` wrote, what `tscap loss --json` wrote, or one of each";

/// Writes the page, then prints the tables.
pub(super) fn run(plan: &ReportPlan) -> Result<Exit, Failure> {
    if let Some(output) = &plan.output {
        for file in &plan.files {
            check_apart(file, output)?;
        }
    }
    let document = match (plan.paper, &plan.files[..]) {
        (true, files) => papers(files)?,
        (false, [file]) => drawn(file)?,
        (false, files) => beside(files)?,
    };
    if let Some(path) = &plan.output {
        write_page(&document.page(), path)?;
    }
    print(&document.text(layout(plan.verbose)))
}

fn drawn(file: &Path) -> Result<Document, Failure> {
    // Once only: it may be a pipe.
    let mut saved = open(file)?;
    let begins = saved.fill_buf().context(cannot_read(file))?;
    if is_header(begins) {
        return Ok(clock_document(&digest_of(saved, file)?));
    }
    Ok(read_of(saved, file)?.document())
}

/// Measurements of delays beside each other.
fn beside(files: &[PathBuf]) -> Result<Document, Failure> {
    let measurement = |file: &PathBuf| match read(file)? {
        Saved::Delay(measurement) => Ok(*measurement),
        other => Err(Failure::new(format!(
            "cannot show {} beside others: it is a {}",
            file.display(),
            other.what()
        ))
        .hint("give one file, only such as `tscap delay --json` wrote, or --paper")),
    };
    let measurements = files.iter().map(measurement);
    let measurements = measurements.collect::<Result<Vec<Measurement>, Failure>>()?;
    let measurements: Vec<_> = measurements.iter().collect();
    Ok(delay_document(&measurements))
}

/// A comparison, a sweep, or both in the order of the papers.
fn papers(files: &[PathBuf]) -> Result<Document, Failure> {
    let (mut comparison, mut sweep) = (None, None);
    for file in files {
        let twice = match read(file)? {
            Saved::Comparison(read) => comparison.replace(read).is_some(),
            Saved::Sweep(read) => sweep.replace(read).is_some(),
            other => {
                return Err(Failure::new(format!(
                    "cannot tell {} in the order of the papers: it is a {}",
                    file.display(),
                    other.what()
                ))
                .hint(OF_PAPERS));
            }
        };
        if twice {
            return Err(Failure::new(format!(
                "cannot tell {} beside the other file: both are of one kind",
                file.display()
            ))
            .hint(OF_PAPERS));
        }
    }
    let papers = Papers {
        comparison: comparison.as_deref(),
        sweep: sweep.as_deref(),
    };
    Ok(papers.document())
}

/// Writes a page, whole or not at all.
pub(super) fn write_page(page: &str, path: &Path) -> Result<(), Failure> {
    write_whole(path, page)
        .context(format!("cannot write {}", path.display()))
        .hint("give a file in a folder that you may write to")
}

/// Reads what was saved.
pub(super) fn read(path: &Path) -> Result<Saved, Failure> {
    read_of(open(path)?, path)
}

fn read_of(mut from: impl Read, path: &Path) -> Result<Saved, Failure> {
    let what = || cannot_read(path);
    let mut bytes = Vec::new();
    let read = from.read_to_end(&mut bytes).context(what());
    let saved = read.and_then(|_| {
        let json = std::str::from_utf8(&bytes);
        let json = json.map_err(|_| Failure::new(format!("{}: it is not JSON", what())))?;
        Saved::from_json(json).context(what())
    });
    saved.hint(SAVED)
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).context(cannot_read(path));
    file.map(BufReader::new).hint(SAVED)
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// Reads a log of the clock.
pub(super) fn digest(path: &Path) -> Result<Digest, Failure> {
    digest_of(open(path)?, path)
}

fn digest_of(from: impl BufRead, path: &Path) -> Result<Digest, Failure> {
    let what = || cannot_read(path);
    let mut reader = LogReader::new(from).context(what())?;
    let mut digest = Digest::default();
    digest.take(Line::Header(reader.header().clone()));
    while let Some(line) = reader.next_line().context(what())? {
        digest.take(line);
    }
    if reader.is_torn() {
        let name = path.display();
        say(&format!(
            "{name}: the last line is torn: what comes before it was used"
        ));
    }
    Ok(digest)
}

/// A page must not take the place of what it is drawn of.
pub(super) fn check_apart(saved: &Path, report: &Path) -> Result<(), Failure> {
    if !is_same(saved, report) {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "cannot write the report over {}, which it is drawn of",
            saved.display()
        ))
        .hint("give the report another file"))
    }
}

/// Better to fail now than after minutes of measuring.
pub(super) fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let writable = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        // A file is no folder, whoever may write to it.
        nix::unistd::access(&folder.join("."), nix::unistd::AccessFlags::W_OK)
            .map_err(io::Error::from)
    };
    writable
        .context(format!("cannot write {}", path.display()))
        .hint("give --report a file in a folder that you may write to")
}
