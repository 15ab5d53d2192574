//! The commands of docs/wireshark.md, in their order, as they stand there.

use tscap_testkit::bench::Bench;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;

use super::user::{PROGRAMS, Pings, User};
use tscap_testkit::shown::{Runner, commands};

#[test]
fn the_documented_commands_work() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("documents");
    bench.add_addresses();
    let user = User::new();
    let plugin = user.plugin().display().to_string();
    let _pings = Pings::on(&bench);
    let run = |line: &str| {
        let line = line
            .replace("eth0", &bench.rx.name)
            .replace("packaging/wireshark/tscap.lua", &plugin);
        let done = user.shell(&bench.rx.netns, &line);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        done.stdout
    };
    let mut printed = Vec::new();
    let lines = commands(Runner::Wireshark).into_iter();
    // What another machine takes is in `remote.rs`.
    for line in lines.filter(|line| !line.contains("sshdump")) {
        let output = run(&line);
        if line.contains("-w out.pcapng") {
            let recording = Recording::read(&user.file("out.pcapng"));
            assert_eq!(recording.packets.len(), 20, "{line}");
            let has_raw = recording.packets.iter().all(|it| it.has_raw);
            assert_eq!(has_raw, line.contains("keepraw"), "{line}");
        } else if line.contains("-r out.pcapng") {
            printed.push(output);
        } else if line == "tshark -D" {
            assert!(output.contains("tscap-rx0 (tscap: rx0)"), "{output}");
        }
    }
    let [fields, columns] = &printed[..] else {
        panic!("{printed:?}");
    };
    let raw = |line: &str| {
        line.split("\ttai\t")
            .nth(1)?
            .split('\t')
            .next()?
            .parse()
            .ok()
    };
    let raw: Vec<u64> = fields.lines().filter_map(raw).collect();
    assert_eq!((raw.len(), fields.lines().count()), (20, 20), "{fields}");
    for (line, raw) in columns.lines().zip(&raw) {
        assert!(line.contains(&raw.to_string()), "{raw}: {line}");
    }
}
