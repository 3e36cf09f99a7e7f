// The limit of connections if several processes share it. A process that accepts a connection asks the first process,
// which counts the connections of all processes, whether to keep it. Requests on the connection wait for the decision.
// So no connection is refused below the limit, and none is kept above it. An instance of one process leaves the limit
// to Node.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Given the number of connections that this process has open, returns how many of them it may keep. */
export type AllowConnections = (open: number) => number | Promise<number>

/** Counts the connections of each process of an instance, in its first process. */
export class ConnectionCounts {
  readonly #limit: number
  readonly #kept = new Map<unknown, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Returns how many of its open connections a process may keep. */
  allow(process: unknown, open: number): number {
    this.#kept.delete(process)
    const keptByOthers = this.#kept.values().reduce((sum, kept) => sum + kept, 0)
    const kept = Math.min(open, this.#limit - keptByOthers)
    this.#kept.set(process, kept)
    return kept
  }

  /** Forgets a process that has ended, and its connections. */
  forget(process: unknown): void {
    this.#kept.delete(process)
  }
}

/** Keeps or refuses the connections of one process. */
export class ConnectionLimit {
  readonly #allow: AllowConnections
  readonly #onRefused: () => void
  readonly #open = new Set<Socket>()
  /** Connections that are neither kept nor refused yet, oldest first, with their waiting requests. */
  readonly #undecided = new Map<Socket, (() => void)[]>()
  #changed = false
  #asking = false

  constructor(server: Server, allow: AllowConnections, onRefused: () => void) {
    this.#allow = allow
    this.#onRefused = onRefused
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      this.#undecided.set(socket, [])
      socket.once('close', () => {
        this.#undecided.delete(socket)
        if (this.#open.delete(socket)) void this.#decide()
      })
      void this.#decide()
    })
  }

  /** Returns whether the connection is kept. If that is not decided yet, calls `serve` when it is kept. */
  isKept(socket: Socket, serve: () => void): boolean {
    const waiting = this.#undecided.get(socket)
    waiting?.push(serve)
    return waiting === undefined
  }

  /** Asks one question at a time: the next one covers all connections that were opened or closed meanwhile. */
  async #decide(): Promise<void> {
    this.#changed = true
    if (this.#asking) return
    this.#asking = true
    while (this.#changed) {
      this.#changed = false
      const asked = [...this.#undecided.keys()]
      const open = this.#open.size
      const refusals = open - (await this.#allow(open))
      for (const [index, socket] of asked.entries()) {
        if (index < asked.length - refusals) this.#keep(socket)
        else this.#refuse(socket)
      }
    }
    this.#asking = false
  }

  #keep(socket: Socket): void {
    const waiting = this.#undecided.get(socket)
    this.#undecided.delete(socket)
    for (const serve of waiting ?? []) serve()
  }

  #refuse(socket: Socket): void {
    this.#open.delete(socket)
    socket.destroy()
    this.#onRefused()
  }
}
