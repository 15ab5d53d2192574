//! The answers as text.

use tscap_base::text::escaped::escaped;
use tscap_base::text::fold::fold;
use tscap_base::text::numbers::{counted, ring as length, size};
use tscap_base::text::table::{Table, columns};
use tscap_lab::loss::{Answer, DiskRate, FrameLimits, Limits};

/// Most columns of prose.
const PROSE: usize = 80;

/// Whether a load fits, in so many columns.
pub(super) fn of_load(answer: &Answer, columns: usize) -> String {
    let question = &answer.question;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let lost = answer.lost_before + answer.lost_in_ring;
    let verdict = match (answer.fits, lost > 0.0) {
        (true, _) => "it fits: nothing is lost".to_owned(),
        (false, true) => format!(
            "it does not fit: {} lost, {} before the program and {} in the ring",
            percent(lost),
            percent(answer.lost_before),
            percent(answer.lost_in_ring)
        ),
        (false, false) => "it does not fit: the file has not enough room".to_owned(),
    };
    let ring = match (answer.ring_needed, answer.ring_advised) {
        (Some(needed), Some(advised)) => format!(
            "a ring of {} is needed; one of {} also bears 5 ms without the converter",
            length(needed),
            length(advised)
        ),
        (Some(needed), None) => format!(
            "a ring of {} is needed; none bears 5 ms without the converter",
            length(needed)
        ),
        (None, _) => "no ring suffices: a stage takes less than comes".to_owned(),
    };
    let room = answer
        .room_bytes
        .map(|room| format!(", and {} are free", size(room)));
    let storage = match (&answer.disk, answer.file_bytes_per_s) {
        (Some(disk), _) => of_disk(disk),
        (None, Some(rate)) => format!("storage takes {}/s", size(rate as u64)),
        (None, None) => "storage slower than where the costs were measured is not predicted: \
                         give --folder to measure it, or --file-rate"
            .to_owned(),
    };
    let head = format!(
        "{} of {} bytes a second for {} s, {} bytes of each kept, ring of {}\n{verdict}\n",
        counted(question.rate.round() as u64, "frame"),
        question.size,
        question.seconds,
        question.caplen,
        length(question.ring_bytes),
    );
    let notes = [
        format!(
            "receiving takes {} of a CPU, converting and writing {} of another",
            percent(answer.receive_load),
            percent(answer.convert_load)
        ),
        ring,
        format!(
            "the file gets {} long{}",
            size(answer.file_bytes as u64),
            room.unwrap_or_default()
        ),
        storage,
        of_stages(&answer.limits),
        DRIVER.to_owned(),
    ];
    head + &lines(notes, columns)
}

const DRIVER: &str = "a network card's driver takes something besides, which no veth can tell";

/// From which rate on each stage loses frames, and what a port needs, in `width` columns.
pub(super) fn of_limits(limits: &Limits, width: usize) -> String {
    let clock = limits.clock.name();
    let rows = limits.frames.iter().map(|frame| {
        let gbit = frame.lossless * f64::from(frame.size) * 8e-9;
        vec![
            frame.size.to_string(),
            frame.caplen.to_string(),
            rate(frame.receiving),
            rate(frame.converting),
            frame.disk.map_or_else(|| "-".to_owned(), rate),
            frame.first.name().to_owned(),
            format!("{} ({gbit:.2} Gbit/s)", rate(frame.lossless)),
        ]
    });
    let table = Table::figures(
        format!("frames a second that each stage takes alone, stamped by {clock}"),
        &columns("size | kept | receiving | converting | disk | loses first | from"),
        rows.collect(),
    );
    let disk = match (&limits.disk, limits.costs.writer) {
        (Some(disk), _) => of_disk(disk),
        (None, Some(writer)) => format!("the disk takes {}/s", size(writer.bytes_per_s as u64)),
        (None, None) => "no disk was measured: give --folder, or --file-rate".to_owned(),
    };
    let notes = [
        "receiving: by one CPU, with the program, to the end of the frame in the network stack"
            .to_owned(),
        "converting: by one thread, with writing to memory".to_owned(),
        disk,
        DRIVER.to_owned(),
    ];
    let table = table.words(&[5, 6]).named_by(2);
    let mut text = table.lines_within(width).join("\n") + "\n" + &lines(notes, width);
    if let Some(port) = limits.port {
        text += &of_port(limits, port, width);
    }
    text
}

fn of_port(limits: &Limits, port: u64, width: usize) -> String {
    let rows = limits.frames.iter().filter_map(|frame| {
        let needs = frame.needs?;
        let [short, long] = needs.rings;
        Some(vec![
            frame.size.to_string(),
            frame.caplen.to_string(),
            rate(needs.rate),
            format!("{:.1}", needs.receive_cpus),
            format!("{:.1}", needs.convert_cpus),
            size(needs.file_bytes_per_s as u64),
            needs
                .disks
                .map_or_else(|| "-".to_owned(), |disks| format!("{disks:.1}")),
            size(short.bytes as u64),
            size(long.bytes as u64),
        ])
    });
    let table = Table::figures(
        format!(
            "a port of {} Gbit/s, full of frames of one size",
            port as f64 / 1e9
        ),
        &columns("size | kept | frames/s | receiving | converting | files/s | disks | 5 ms | 1 s"),
        rows.collect(),
    );
    let notes = [
        "receiving, converting: so many CPUs; capture --writers gives each of the latter a thread"
            .to_owned(),
        "5 ms, 1 s: memory of all rings that bears such a pause of converters or disks".to_owned(),
        "on the line a frame has 24 bytes more: preamble, check sequence and least gap".to_owned(),
    ];
    format!(
        "\n{}\n{}",
        table.words(&[]).named_by(2).lines_within(width).join("\n"),
        lines(notes, width)
    )
}

fn of_stages(limits: &FrameLimits) -> String {
    let disk = limits.disk.map(|disk| format!(", the disk {}", rate(disk)));
    format!(
        "alone, receiving takes {} of these frames a second, converting {}{}: {} loses first",
        rate(limits.receiving),
        rate(limits.converting),
        disk.unwrap_or_default(),
        limits.first.name()
    )
}

fn of_disk(disk: &DiskRate) -> String {
    let ended = if disk.ended_by_room {
        ", which was half of the free space"
    } else {
        ""
    };
    let direct = 100.0 * disk.direct_bytes as f64 / disk.bytes.max(1) as f64;
    format!(
        "the disk under {} takes {}/s: {}{ended} in {:.1} s of writing and {:.1} s until all was \
         on it, {direct:.0} % of it past the page cache, at {:.2} s of CPU a GB",
        disk.folder,
        size(disk.bytes_per_s as u64),
        size(disk.bytes),
        disk.write_seconds,
        disk.sync_seconds,
        disk.cpu_seconds * 1e9 / disk.bytes.max(1) as f64
    )
}

/// Frames a second, for people.
fn rate(rate: f64) -> String {
    match rate {
        ..1e6 => format!("{:.1} k", rate / 1e3),
        _ => format!("{:.2} M", rate / 1e6),
    }
}

/// Each note in lines of its own.
fn lines<const N: usize>(notes: [String; N], columns: usize) -> String {
    let indented = notes.map(|note| {
        let lines = fold(&escaped(&note), 2, Some(columns.min(PROSE)));
        lines
            .iter()
            .map(|line| format!("  {line}\n"))
            .collect::<String>()
    });
    indented.concat()
}
