//! A stream whose reads and writes are recorded on its connection.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::{Connection, OpenConnection, activity::HEAD};

/// A stream whose reads and writes are recorded, and fail once its connection is closed.
pub struct TimedStream<S> {
    pub(crate) stream: S,
    reset: fn(&S),
    is_blocked: bool,
    /// Bytes that are read before those of the stream.
    unread: Vec<u8>,
    /// The bytes that are left of the client's greeting.
    greeting: usize,
    /// Makes room for another connection once the stream above is closed: fields are dropped in
    /// the order of their declaration.
    open: OpenConnection,
}

impl TimedStream<TcpStream> {
    /// Wraps the socket of a connection.
    pub fn of_socket(stream: TcpStream, open: OpenConnection) -> Self {
        Self::new(stream, open, |stream| drop(stream.set_zero_linger()))
    }
}

impl<S> TimedStream<S> {
    /// Wraps the stream of a connection. `reset` keeps it from sending what its client does not
    /// take.
    pub fn new(stream: S, open: OpenConnection, reset: fn(&S)) -> Self {
        Self { stream, reset, is_blocked: false, unread: Vec::new(), greeting: 0, open }
    }

    /// Waits for a greeting of so many bytes, by which a client shows that it speaks HTTP/2.
    pub(crate) fn expect_greeting(&mut self, bytes: usize) {
        self.connection().mark_handshake();
        self.greeting = bytes;
    }

    /// Returns the connection of this stream.
    pub fn connection(&self) -> &Connection {
        self.open.connection()
    }

    /// Puts back bytes that the next reader needs: the beginning of a request.
    pub fn unread(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.connection().note(HEAD);
        }
        self.unread = bytes;
    }

    fn note_read(&mut self, count: usize) {
        if self.greeting > 0 {
            self.greeting = self.greeting.saturating_sub(count);
            if self.greeting == 0 {
                self.connection().mark_shaken(true);
                self.connection().mark_used();
            }
        }
        self.connection().note_read(count);
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>>
    where
        S: Unpin,
    {
        if self.connection().is_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let polled = write(Pin::new(&mut self.stream), cx);
        self.is_blocked = polled.is_pending();
        // A failed retry is no sign of life.
        if matches!(polled, Poll::Ready(Ok(_))) {
            self.connection().note_written();
        }
        polled
    }
}

impl<S> Drop for TimedStream<S> {
    fn drop(&mut self) {
        if self.is_blocked && self.connection().is_closed() {
            // The kernel would otherwise keep offering the client what it does not read.
            (self.reset)(&self.stream);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let len = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..len]);
            self.unread.drain(..len);
            if self.unread.is_empty() {
                // Frees the allocation, which would otherwise last as long as the connection.
                self.unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let connection = self.connection();
        connection.set_waker(cx.waker());
        if connection.is_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let count = buffer.filled().len() - before;
        if count > 0 {
            self.note_read(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.is_blocked |= polled.is_pending();
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
