// The order of requests on a connection. One at a time: pipelined requests wait until the answer before theirs has been sent, and the
// service reads no more from the connection meanwhile. So answers come in order, a GET sees the effect of the POST before it, and a
// client that does not read its answers holds at most one answer and `WAITING_REQUESTS` parsed requests in memory, whatever it sends.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { stopReading } from './node-http.ts'

/**
 * How many requests may wait on one connection; it is closed if it brings more at once. Node parses a packet of 64 KiB in one
 * go, and such a packet holds up to 3,600 requests, each of which takes 1.5 KB of memory.
 */
const WAITING_REQUESTS = 128

interface Queue {
  /** The response of the request that is being served, or was served last. */
  current: ServerResponse
  waiting: { response: ServerResponse; resumeReading: () => void; serve: () => void }[]
  /** A response that `readOn` was called for. */
  readsOn?: ServerResponse
}

const queues = new WeakMap<Socket, Queue>()

/** Returns the response that is due on a connection, or undefined if every response has been sent. */
export function dueResponse(socket: Socket): ServerResponse | undefined {
  const last = queues.get(socket)?.current
  return last?.writableFinished === false ? last : undefined
}

/** Calls `serve` when the answers to earlier requests of the connection have been sent; reads nothing more until then. */
export function inOrder(response: ServerResponse, serve: () => void): void {
  const { socket } = response.req
  const queue = queues.get(socket)
  if (queue !== undefined && (!queue.current.writableFinished || queue.waiting.length > 0)) {
    waitInQueue(queue, response, serve)
    return
  }
  if (queue === undefined) queues.set(socket, { current: response, waiting: [] })
  else queue.current = response
  serve()
}

/** Reads from the connection while this response is due, whatever waits behind it: only a read reveals that the client has gone. */
export function readOn(response: ServerResponse): void {
  const queue = queues.get(response.req.socket)
  if (queue?.current !== response) return
  queue.readsOn = response
  for (const each of queue.waiting) {
    each.resumeReading()
    each.resumeReading = () => {}
  }
}

function waitInQueue(queue: Queue, response: ServerResponse, serve: () => void): void {
  const { current, waiting } = queue
  if (waiting.length === WAITING_REQUESTS) {
    response.req.socket.destroy()
    return
  }
  waiting.push({ response, resumeReading: queue.readsOn === current ? () => {} : stopReading(response), serve })
  if (waiting.length === 1) current.once('close', () => serveNext(queue))
}

function serveNext(queue: Queue): void {
  const { response, resumeReading, serve } = queue.waiting.shift()!
  // The previous answer was the last of its connection, or the client has disconnected.
  if (!response.req.socket.writable) return
  queue.current = response
  resumeReading()
  if (queue.waiting.length > 0) response.once('close', () => serveNext(queue))
  serve()
}
