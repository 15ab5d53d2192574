//! sshdump with tscap as the remote command, over an SSH server of the test's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tscap_testkit::bench::Bench;
use tscap_testkit::command::must;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;
use tscap_testkit::wait;

use super::user::{LIMIT, Pings, User};
use tscap_testkit::shown::{Runner, commands};

const PROGRAMS: [&str; 8] = [
    "ip",
    "ethtool",
    "ping",
    "setpriv",
    "setcap",
    "tshark",
    "dropbear",
    "dropbearkey",
];
/// Who logs in: the user that has the capabilities.
const LOGIN: &str = "capturer";
const USER_ID: u32 = 65534;
const PORT: &str = "2222";

/// dropbear on 10.9.0.2, with users, keys and a home of its own: its mounts are not the
/// machine's.
#[derive(Debug)]
struct Server(Child);

impl Server {
    /// Lets in who has the key that it makes: its file.
    fn start(bench: &Bench, user: &User) -> (Self, PathBuf) {
        let home = user.file("home");
        let ssh = home.join(".ssh");
        fs::create_dir_all(&ssh).expect("a home");
        let (host, key) = (user.file("host.key"), user.file("dropbear.key"));
        for key in [&host, &key] {
            must(
                Command::new("dropbearkey")
                    .args(["-t", "ed25519", "-f"])
                    .arg(key),
            );
        }
        let shown = must(Command::new("dropbearkey").arg("-y").arg("-f").arg(&key));
        let public = shown.lines().find(|line| line.starts_with("ssh-ed25519 "));
        let keys = ssh.join("authorized_keys");
        fs::write(&keys, public.expect("a public key")).expect("authorize it");
        for (path, mode) in [(&home, 0o755), (&ssh, 0o700), (&keys, 0o600)] {
            chown(path, Some(USER_ID), Some(USER_ID)).expect("give it away");
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("close it");
        }
        let users = user.file("passwd");
        let line = format!(
            "{LOGIN}:x:{USER_ID}:{USER_ID}::{}:/bin/sh\n",
            home.display()
        );
        fs::write(&users, format!("root:x:0:0::/root:/bin/sh\n{line}")).expect("users");

        let script = "mount --make-rprivate / && mount --bind \"$1\" /etc/passwd && \
                      mount -t tmpfs tmpfs /var/log && exec dropbear -F -E -s -r \"$2\" \
                      -p \"10.9.0.2:$3\" -P \"$4\"";
        let mut server = bench.rx.netns.command("unshare");
        server
            .args(["-m", "sh", "-c", script, "sh"])
            .arg(&users)
            .arg(&host);
        server.arg(PORT).arg(user.file("pid")).stderr(Stdio::null());
        let server = Self(server.spawn().expect("start dropbear"));
        wait::until("dropbear to listen", LIMIT, || {
            let listens = bench.rx.netns.must("ss", &["-Htln", "sport", "=", PORT]);
            (!listens.is_empty()).then_some(())
        });
        let openssh = user.file("key");
        let mut convert = Command::new("dropbearconvert");
        convert
            .args(["dropbear", "openssh"])
            .arg(&key)
            .arg(&openssh);
        must(&mut convert);
        chown(&openssh, Some(USER_ID), Some(USER_ID)).expect("give it away");
        (server, openssh)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// sshdump of the wireshark package, into the user's extcap folder.
fn take_sshdump(user: &User) {
    let mut found = glob::glob("/usr/lib/*/wireshark/extcap/sshdump").expect("a pattern");
    let sshdump = found
        .next()
        .expect("sshdump (cargo xtask setup installs it)");
    let link = user.file("extcap").join("sshdump");
    symlink(sshdump.expect("a path"), link).expect("a link");
}

#[test]
fn sshdump_captures_by_tscap_elsewhere() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("ssh");
    bench.add_addresses();
    let user = User::new();
    take_sshdump(&user);
    let (_server, key) = Server::start(&bench, &user);
    let _pings = Pings::on(&bench);
    let shown = commands(Runner::Wireshark).into_iter();
    let mut line: Vec<_> = shown.filter(|line| line.contains("sshdump")).collect();
    let line = line.pop().expect("a documented command");
    let program = format!("{} capture", user.program().display());
    let line = line
        .replace("tscap capture", &program)
        .replace("eth0", &bench.rx.name)
        .replace("remotehost:server", "remotehost:10.9.0.2")
        .replace("alice", LOGIN)
        .replace("port 22", &format!("port {PORT}"));
    let key = key.display();
    let line = format!("{line} -o extcap.sshdump.remoteport:{PORT} -o extcap.sshdump.sshkey:{key}");
    let done = user.shell(&bench.tx.netns, &line);
    assert!(done.status.success(), "{}", done.stderr);

    let recording = Recording::read(&user.file("out.pcapng"));
    assert_eq!(recording.packets.len(), 20);
    let is_ssh = |data: &[u8]| data[12..14] == [8, 0] && data[23] == 6;
    assert!(!recording.packets.iter().any(|it| is_ssh(&it.data)));
    let interface = &recording.interfaces[0];
    assert_eq!((&*interface.name, interface.nanoseconds), ("rx0", true));
    assert_eq!(interface.custom["stamp"]["source"], "ktime");
    // The connection is closed, so nobody reads what tscap writes.
    user.wait_for_the_end_of_tscap();
    assert_eq!(bench.rx.xdp_program(), None);
}
