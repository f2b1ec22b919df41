//! Kept recordings, read and written again.

use std::path::Path;
use std::sync::Arc;

use prost::Message;

use super::super::PartKind as Part;
use super::container::{FOOTER, HEADER, Header, MOMENT, RecordKind};
use super::frame::{LARGEST, Payload};
use super::{Encoder, Observation, Snapshot, SnapshotGroup, View};

/// The frames of a file that begin a group.
fn keys(file: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut rest) = (Vec::new(), file);
    while let Some((head, tail)) = rest.split_first_chunk::<HEADER>() {
        let header = Header::parse(head).unwrap();
        let (payload, tail) = tail.split_at(header.length as usize);
        if header.kind == RecordKind::Key {
            frames.push(&payload[MOMENT..]);
        }
        rest = &tail[FOOTER..];
    }
    frames
}

fn payload(frame: &[u8]) -> Payload {
    let mut bytes = Vec::with_capacity(LARGEST);
    zstd_safe::decompress(&mut bytes, frame).unwrap();
    Payload::decode(&*bytes).unwrap()
}

#[test]
fn kept_recordings_are_written_again_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/kept");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ltr") {
            continue;
        }
        let name = path.display();
        for frame in keys(&std::fs::read(&path).unwrap()) {
            let mut group = SnapshotGroup::default();
            group.open(frame).unwrap();
            let kept = group.snapshot(0).unwrap();
            let view = View {
                id: kept.id,
                snapshot: Some(Arc::new(kept.snapshot)),
                rights: kept.rights,
                lock_names: kept.lock_names,
                events: kept.events,
                blame: kept.blame.unwrap_or_default(),
                expected: kept.expected.unwrap_or_default(),
                ..View::default()
            };
            let look = Observation { view: Arc::new(view), past: Arc::new(kept.past), notes: kept.notes };
            let again = Encoder::with_events().encode(&look).unwrap();
            let mut group = SnapshotGroup::default();
            group.open(&again.bytes).unwrap();
            let tables = |snapshot: &Snapshot| format!("{:?} {:?}", snapshot.sources, snapshot.task_sets);
            let kept = tables(look.view.snapshot.as_ref().unwrap());
            let is_read_again = tables(&group.snapshot(0).unwrap().snapshot) == kept;
            let (new, old) = (payload(&again.bytes), payload(frame));
            assert_eq!(new.strings, old.strings, "{name}");
            assert_eq!(new.events, old.events, "{name}");
            assert_eq!((new.blame, new.tick), (old.blame, old.tick), "{name}");
            assert_eq!(new.parts.len(), old.parts.len(), "{name}");
            for (new, old) in new.parts.iter().zip(&old.parts) {
                assert_eq!(new.kind, old.kind, "{name}");
                // Columns of leases and tasks, and the refusals, were added later.
                let is_same = match old.kind {
                    kind if [Part::SourceTables as u32, Part::Tasks as u32].contains(&kind) => is_read_again,
                    kind if kind == Part::Series as u32 => new.content.starts_with(&old.content),
                    _ => new.content == old.content,
                };
                assert!(is_same, "part {} of {name}", old.kind);
                count += 1;
            }
        }
    }
    assert!(count > 20 * 16, "{count} parts");
}
