//! Frames of every protocol that the expressions name, whole, cut and broken, from a
//! seed. Addresses and ports are few, so that expressions meet them.

use fastrand::Rng;

/// `count` frames.
pub fn frames(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(|_| frame(&mut rng)).collect()
}

fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(mac(rng));
    frame.extend(mac(rng));
    match rng.u32(..100) {
        0..4 => return random(rng),
        4..84 => ethertype(rng, &mut frame, 0),
        84..90 => llc(rng, &mut frame),
        _ => {
            let known = [
                0x809b_u16, 0x80f3, 0x6003, 0x6004, 0x6001, 0x6002, 0x8137, 0x8035,
            ];
            frame.extend(pick(rng, &known).to_be_bytes());
            bytes(rng, &mut frame, 40);
        }
    }
    match rng.u32(..100) {
        // Cut anywhere.
        0..20 => frame.truncate(rng.usize(14..=frame.len().max(14))),
        20..30 => frame.resize(frame.len().max(60), 0),
        // A byte is wrong.
        30..36 => {
            let at = rng.usize(12..frame.len());
            frame[at] = rng.u8(..);
        }
        36..39 => bytes(rng, &mut frame, 1500),
        39..40 => bytes(rng, &mut frame, 9000),
        _ => {}
    }
    frame.resize(frame.len().max(14), 0);
    frame
}

fn random(rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![0; 14];
    rng.fill(&mut frame);
    bytes(rng, &mut frame, 200);
    frame
}

fn ethertype(rng: &mut Rng, frame: &mut Vec<u8>, depth: u32) {
    match rng.u32(..100) {
        0..40 => {
            frame.extend(0x0800_u16.to_be_bytes());
            ipv4(rng, frame, depth);
        }
        40..66 => {
            frame.extend(0x86dd_u16.to_be_bytes());
            ipv6(rng, frame, depth);
        }
        66..72 => {
            frame.extend(pick(rng, &[0x0806_u16, 0x0806, 0x8035]).to_be_bytes());
            arp(rng, frame);
        }
        72..86 if depth < 3 => {
            frame.extend(pick(rng, &[0x8100_u16, 0x88a8, 0x9100]).to_be_bytes());
            let tag = pick(rng, &[5_u16, 100, 7]) | pick(rng, &[0_u16, 0x2000]);
            frame.extend(tag.to_be_bytes());
            ethertype(rng, frame, depth + 1);
        }
        86..92 => {
            frame.extend(pick(rng, &[0x8847_u16, 0x8847, 0x8848]).to_be_bytes());
            mpls(rng, frame, depth);
        }
        92..98 => {
            frame.extend(pick(rng, &[0x8864_u16, 0x8864, 0x8863]).to_be_bytes());
            frame.extend([0x11, 0, 0, pick(rng, &[0x27, 0x28]), 0, 60]);
            if rng.bool() {
                frame.extend([0, 0x21]);
                ipv4(rng, frame, depth);
            } else {
                frame.extend([0, 0x57]);
                ipv6(rng, frame, depth);
            }
        }
        _ => {
            frame.extend(rng.u16(..).to_be_bytes());
            bytes(rng, frame, 60);
        }
    }
}

fn mpls(rng: &mut Rng, frame: &mut Vec<u8>, depth: u32) {
    let labels = rng.u32(1..4);
    for left in (0..labels).rev() {
        let label = pick(rng, &[1000_u32, 2000, 3000]);
        frame.extend((label << 12 | u32::from(left == 0) << 8 | 64).to_be_bytes());
    }
    if rng.bool() {
        ipv4(rng, frame, depth);
    } else {
        ipv6(rng, frame, depth);
    }
}

fn ipv4(rng: &mut Rng, frame: &mut Vec<u8>, depth: u32) {
    let options = if rng.u32(..5) == 0 { rng.u8(1..=10) } else { 0 };
    let protocol = protocol(rng, &[1, 2, 51]);
    let fragment = match rng.u32(..10) {
        0 => 0x2000,
        1 => 0x2000 | rng.u16(1..0x1fff),
        _ => pick(rng, &[0, 0x4000]),
    };
    let length = rng.u16(20..200);
    frame.extend([0x45 + options, rng.u8(..8)]);
    frame.extend(length.to_be_bytes());
    frame.extend(rng.u16(..).to_be_bytes());
    frame.extend(u16::to_be_bytes(fragment));
    frame.extend([pick(rng, &[1, 60, 64, 128]), protocol]);
    frame.extend(rng.u16(..).to_be_bytes());
    frame.extend(ipv4_address(rng));
    frame.extend(ipv4_address(rng));
    for _ in 0..options {
        frame.extend([1, 1, 1, 0]);
    }
    payload(rng, frame, protocol, depth);
}

fn ipv6(rng: &mut Rng, frame: &mut Vec<u8>, depth: u32) {
    // Fewer than a filter's loops are repeated.
    let extensions: Vec<u8> = (0..[0, 0, 0, 1, 2, 3, 7][rng.usize(..7)])
        .map(|_| pick(rng, &[0, 43, 44, 60]))
        .collect();
    let last = protocol(rng, &[58, 59]);
    let mut next = extensions.iter().copied().chain([last]);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(rng.u16(..200).to_be_bytes());
    frame.extend([next.next().unwrap_or(last), pick(rng, &[1, 64, 255])]);
    frame.extend(ipv6_address(rng));
    frame.extend(ipv6_address(rng));
    for &extension in &extensions {
        let length = if extension == 44 { 0 } else { rng.u8(..3) };
        let bytes = (usize::from(length) + 1) * 8;
        frame.extend([next.next().unwrap_or(last), length]);
        frame.resize(frame.len() + bytes - 2, 0);
    }
    payload(rng, frame, last, depth);
}

/// A protocol above IP, or one of `others`.
fn protocol(rng: &mut Rng, others: &[u8]) -> u8 {
    match rng.u32(..10) {
        0..4 => 6,
        4..7 => 17,
        7 => pick(rng, &[132, 47, 50, 103, 112, 89, 41, 9]),
        _ => pick(rng, others),
    }
}

fn payload(rng: &mut Rng, frame: &mut Vec<u8>, protocol: u8, depth: u32) {
    match protocol {
        6 => {
            ports(rng, frame);
            frame.extend(rng.u32(..).to_be_bytes());
            frame.extend(rng.u32(..).to_be_bytes());
            let options = pick(rng, &[0_u8, 0, 3]);
            frame.extend([0x50 + (options << 4), pick(rng, &[2, 18, 16, 24, 17, 4, 0])]);
            frame.extend([0x20, 0, 0, 0, 0, 0]);
            frame.resize(frame.len() + usize::from(options) * 4, 1);
            frame.extend(b"GET / HTTP/1.1\r\n");
        }
        17 if depth < 2 && rng.u32(..8) == 0 => {
            frame.extend([0x30, 0x39]);
            frame.extend(6081_u16.to_be_bytes());
            frame.extend([0, 60, 0, 0, 0, 0]);
            frame.extend(pick(rng, &[0x0800_u16, 0x6558]).to_be_bytes());
            frame.extend([0, 0, pick(rng, &[7, 8]), 0]);
            ipv4(rng, frame, depth + 1);
        }
        17 => {
            ports(rng, frame);
            frame.extend(rng.u16(8..100).to_be_bytes());
            frame.extend([0, 0]);
            frame.extend([1, 2, 3, 4]);
        }
        132 => {
            ports(rng, frame);
            frame.extend([0; 12]);
        }
        1 => frame.extend([pick(rng, &[0, 3, 8, 11]), rng.u8(..4), 0, 0, 0, 1, 0, 1]),
        58 => frame.extend([pick(rng, &[1, 128, 129, 135]), 0, 0, 0, 0, 1, 0, 1]),
        51 => {
            // An authentication header, and a segment in it.
            frame.extend([6, rng.u8(..4), 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
            ports(rng, frame);
        }
        47 => {
            frame.extend([0, 0, 8, 0]);
            if depth < 2 {
                ipv4(rng, frame, depth + 1);
            }
        }
        2 => frame.extend([0x16, 0, 0, 0, 224, 0, 0, 1]),
        103 => frame.extend([0x20 | rng.u8(..4), 0, 0, 0]),
        _ => bytes(rng, frame, 40),
    }
    if rng.bool() {
        bytes(rng, frame, 100);
    }
}

fn arp(rng: &mut Rng, frame: &mut Vec<u8>) {
    frame.extend([0, 1, 8, 0, 6, 4, 0, rng.u8(1..5)]);
    frame.extend(mac(rng));
    frame.extend(ipv4_address(rng));
    frame.extend(mac(rng));
    frame.extend(ipv4_address(rng));
}

/// An 802.3 frame: a length in the place of the type, and LLC.
fn llc(rng: &mut Rng, frame: &mut Vec<u8>) {
    frame.extend(rng.u16(3..200).to_be_bytes());
    let saps = [
        [0x42, 0x42],
        [0xfe, 0xfe],
        [0xf0, 0xf0],
        [0xe0, 0xe0],
        [0xaa, 0xaa],
        [0xff, 0xff],
    ];
    frame.extend(pick(rng, &saps));
    frame.push(pick(
        rng,
        &[
            0x03, 0x73, 0x43, 0x7f, 0xe3, 0xaf, 0x87, 0x01, 0x05, 0x09, 0x00,
        ],
    ));
    match rng.u32(..3) {
        0 => frame.extend([
            0x83,
            27,
            1,
            0,
            pick(rng, &[15, 16, 17, 18, 20, 24, 25, 26, 27]),
            1,
            0,
        ]),
        1 => {
            frame.extend(pick(rng, &[[0_u8, 0, 0], [8, 0, 7]]));
            frame.extend(pick(rng, &[0x809b_u16, 0x80f3, 0x0800, 0x8137]).to_be_bytes());
        }
        _ => frame.extend([pick(rng, &[0x81, 0x82]), 0, 0]),
    }
    bytes(rng, frame, 60);
}

fn ports(rng: &mut Rng, frame: &mut Vec<u8>) {
    for _ in 0..2 {
        let port = pick(rng, &[22_u16, 53, 80, 443, 1500, 2905, 3500, 6081, 40000]);
        frame.extend(port.to_be_bytes());
    }
}

fn mac(rng: &mut Rng) -> [u8; 6] {
    match rng.u32(..12) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, 1],
        2 => [0x33, 0x33, 0, 0, 0, 1],
        3 => [1, 0x80, 0xc2, 0, 0, 0],
        _ => [2, 0, 0, 0, 0, rng.u8(1..4)],
    }
}

fn ipv4_address(rng: &mut Rng) -> [u8; 4] {
    match rng.u32(..10) {
        0..7 => [10, 0, 0, rng.u8(1..5)],
        7 => [192, 168, 1, rng.u8(..3)],
        8 => [224, 0, 0, 1],
        _ => [172, 16, 0, 1],
    }
}

fn ipv6_address(rng: &mut Rng) -> [u8; 16] {
    match rng.u32(..8) {
        0 => [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        1 => [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
        _ => [
            0x20,
            1,
            0xd,
            0xb8,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            rng.u8(1..4),
        ],
    }
}

/// Appends up to `most` bytes.
fn bytes(rng: &mut Rng, frame: &mut Vec<u8>, most: usize) {
    let from = frame.len();
    frame.resize(from + rng.usize(..=most), 0);
    rng.fill(&mut frame[from..]);
}

fn pick<T: Copy>(rng: &mut Rng, among: &[T]) -> T {
    among[rng.usize(..among.len())]
}
