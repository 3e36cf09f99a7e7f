// Writes log lines to a file descriptor: whole, in order, and without waiting for the reader while the process serves. Lines
// that a slow reader does not take wait in memory, up to a limit; further ones are dropped and counted.
import { writeSync } from 'node:fs'

/** A write of at most this many bytes to a pipe is atomic (PIPE_BUF of Linux); a longer one may mix with that of another process. */
export const WRITE_LIMIT = 4096

/** The most bytes that wait: some 15,000 lines of requests. */
const WAITING_LIMIT = 4 * 1024 * 1024

/** When to try again after EAGAIN. The 64 KiB of a pipe, once every 20 ms, are more lines than a process can make. */
const FULL_RETRY_MS = 20

/** When to try again if the reader has left (EPIPE; a FIFO can get another one), or if the disk is full (ENOSPC). */
const FAILED_RETRY_MS = 1000

/** How long `flush` waits for a reader, in all, and for one that reads nothing. */
const FLUSH_WITHIN_MS = 5000
const FLUSH_STALLED_MS = 2000
const FLUSH_RETRY_MS = 10

export interface OutputEvents {
  /** Called with the first error of an outage. */
  onFailure(error: Error): void
  /** Called when all that waited has been written, with the number of lines that were dropped before. */
  onDropped(count: number): void
}

export interface LogFile {
  fd: number
  /** The handle of a pipe or socket. It is undocumented, but nothing documented makes a file descriptor non-blocking. */
  _handle?: { setBlocking?(isBlocking: boolean): unknown } | null
}

export class LogOutput {
  readonly #file: LogFile
  readonly #events: OutputEvents
  /** Lines, joined up to WRITE_LIMIT bytes. The first one is a buffer if a part of it is written: a full disk takes a part. */
  readonly #waiting: (string | Buffer)[] = []
  #waitingBytes = 0
  /** The bytes of the last element. */
  #lastBytes = 0
  /** Set after a line was written: further lines of this turn of the event loop are joined, which takes fewer system calls. */
  #isTurnOpen = false
  #retry: NodeJS.Timeout | undefined
  #isFailing = false
  /** The lines dropped since `onDropped` was called. */
  #droppedNow = 0
  /** The lines dropped since the start. */
  dropped = 0

  constructor(file: LogFile, events: OutputEvents) {
    this.#file = file
    this.#events = events
  }

  write(line: string): void {
    // Once a line is dropped, so are all that follow until nothing waits: there is one gap, and `onDropped` marks its place.
    if (this.#droppedNow > 0 || this.#waitingBytes >= WAITING_LIMIT) {
      this.#droppedNow += 1
      this.dropped += 1
      return
    }
    this.#enqueue(line)
    if (this.#isTurnOpen || this.#retry !== undefined) return
    this.#isTurnOpen = true
    setImmediate(() => {
      this.#isTurnOpen = false
      if (this.#retry === undefined) this.#attempt()
    })
    this.#attempt()
  }

  /** Writes what waits, and waits for the reader within limits. Blocks the event loop: for the end of a process. */
  flush(): void {
    const startedAt = performance.now()
    let progressAt = startedAt
    for (;;) {
      const before = this.#waitingBytes
      const error = this.#attempt()
      if (this.#waiting.length === 0 || (error !== undefined && error.code !== 'EAGAIN')) return
      const now = performance.now()
      if (this.#waitingBytes < before) progressAt = now
      if (now - startedAt > FLUSH_WITHIN_MS || now - progressAt > FLUSH_STALLED_MS) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FLUSH_RETRY_MS)
    }
  }

  #enqueue(line: string): void {
    const bytes = Buffer.byteLength(line)
    this.#waitingBytes += bytes
    if (this.#waiting.length > 0 && this.#lastBytes + bytes <= WRITE_LIMIT) {
      this.#waiting[this.#waiting.length - 1] += line
      this.#lastBytes += bytes
    } else {
      this.#waiting.push(line)
      this.#lastBytes = bytes
    }
  }

  /** Writes what waits. If the output does not take all of it, tries again later, and returns the error. */
  #attempt(): NodeJS.ErrnoException | undefined {
    clearTimeout(this.#retry)
    this.#retry = undefined
    try {
      this.#writeWaiting()
    } catch (thrown) {
      const error = thrown as NodeJS.ErrnoException
      const isFull = error.code === 'EAGAIN'
      if (!isFull && !this.#isFailing) this.#events.onFailure(error)
      this.#isFailing = !isFull
      this.#retry = setTimeout(() => this.#attempt(), isFull ? FULL_RETRY_MS : FAILED_RETRY_MS).unref()
      return error
    }
    this.#isFailing = false
    const count = this.#droppedNow
    this.#droppedNow = 0
    if (count > 0) this.#events.onDropped(count)
    return undefined
  }

  #writeWaiting(): void {
    // Each worker that starts or ends makes the pipe blocking for all processes that share it (libuv's spawn, Node's exit). A write
    // would then wait for a reader that has stopped.
    this.#file._handle?.setBlocking?.(false)
    for (let chunk = this.#waiting[0]; chunk !== undefined; chunk = this.#waiting[0]) {
      // Either type is fine; no overload takes both.
      const written = writeSync(this.#file.fd, chunk as string)
      this.#waitingBytes -= written
      if (written === Buffer.byteLength(chunk)) {
        this.#waiting.shift()
      } else {
        this.#waiting[0] = Buffer.from(chunk).subarray(written)
        // No line is joined to a buffer.
        this.#lastBytes = WRITE_LIMIT
      }
    }
  }
}
