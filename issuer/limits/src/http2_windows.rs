//! Flow-control windows of HTTP/2 connections.
//!
//! 1. A request body that the server is not ready for waits in the connection: at most a stream's
//!    window of it. The connection's window has room for all streams at once, so that none waits
//!    for others that nobody reads.
//! 2. Bodies may arrive in very small frames: many clients of gRPC send one for each message. h2
//!    charges an unread frame with what it is shorter than 256 bytes, which is about what it costs
//!    in memory, and ends the connection (`too_many_data_frames`) when the sum exceeds half of the
//!    connection's window. So that window also decides how many streams may wait unread.
//!    A client that has not seen the server's settings yet may fill a stream with 64 KiB, so there
//!    is room for a few of those.
//! 3. Both bound the memory of a connection ([`Windows::bytes`]), by which connections are limited
//!    in number.
//!
//! Rejected: a task that reads ahead of each body. hyper gives the client credit for all that is
//! read, so such a task has to stop somewhere too, and frames wait in the connection as before.

/// The windows of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Maximum number of streams at a time.
    pub streams: u32,
    /// Bytes of a stream that may arrive before they are read.
    pub stream: u32,
    /// The same of a connection.
    pub connection: u32,
}

/// The windows of the links API over gRPC.
pub const GRPC: Windows = Windows { streams: 128, stream: 4 << 10, connection: 4 << 20 };
/// The windows of the public listener.
pub const PUBLIC: Windows = Windows { streams: 8, stream: 16 << 10, connection: 1 << 20 };

impl Windows {
    /// Returns the maximum bytes of memory that unread frames of a connection take.
    pub const fn bytes(&self) -> u64 {
        (self.streams * self.stream + self.connection / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stream_waits_for_others_that_nobody_reads() {
        for windows in [GRPC, PUBLIC] {
            assert!(windows.streams * windows.stream <= windows.connection, "{windows:?}");
        }
    }

    #[test]
    fn streams_of_small_messages_may_be_unread() {
        for (windows, frame, streams) in [
            // The shortest create over gRPC, and one with an ordinary URL.
            (GRPC, 24, 50),
            (GRPC, 45, 100),
            // A proxy or client may split messages as well.
            (GRPC, 8, 16),
            (GRPC, 1, 2),
            (PUBLIC, 8, 1),
            // A key may have four bulk calls in progress.
            (PUBLIC, 51, 4),
        ] {
            // h2's charge for the unread frames of a stream, beside their content.
            let charge = windows.stream.div_ceil(frame) * (256 - frame);
            assert!(windows.connection / 2 / charge >= streams, "{windows:?} {frame}");
        }
    }
}
