// The limit of connections, where several processes share it: each connection that a process accepts is let in or refused by
// the first process, which counts them all. Until then its requests wait. So none is refused below the limit, and none is
// let in above it; a lone process leaves the limit to Node.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Given the number of connections that this process has open, returns how many of them it may keep. */
export type AllowConnections = (open: number) => number | Promise<number>

export class ConnectionLimit {
  readonly #allow: AllowConnections
  readonly #refused: () => void
  readonly #open = new Set<Socket>()
  /** Those that are neither let in nor refused, oldest first, with the requests that wait for it. */
  readonly #undecided = new Map<Socket, (() => void)[]>()
  #changed = false
  #asking = false

  constructor(server: Server, allow: AllowConnections, refused: () => void) {
    this.#allow = allow
    this.#refused = refused
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      this.#undecided.set(socket, [])
      socket.once('close', () => {
        this.#undecided.delete(socket)
        if (this.#open.delete(socket)) this.#ask()
      })
      this.#ask()
    })
  }

  /** Returns whether the connection is let in; if not yet, calls `serve` when it is. */
  isIn(socket: Socket, serve: () => void): boolean {
    const waiting = this.#undecided.get(socket)
    waiting?.push(serve)
    return waiting === undefined
  }

  #ask(): void {
    this.#changed = true
    if (!this.#asking) void this.#decide()
  }

  /** One question at a time: connections that come meanwhile are part of the next. */
  async #decide(): Promise<void> {
    this.#asking = true
    while (this.#changed) {
      this.#changed = false
      const asked = [...this.#undecided.keys()]
      const open = this.#open.size
      const refusals = open - (await this.#allow(open))
      for (const [index, socket] of asked.entries()) {
        if (index < asked.length - refusals) this.#letIn(socket)
        else this.#refuse(socket)
      }
    }
    this.#asking = false
  }

  #letIn(socket: Socket): void {
    const waiting = this.#undecided.get(socket)
    this.#undecided.delete(socket)
    for (const serve of waiting ?? []) serve()
  }

  #refuse(socket: Socket): void {
    this.#open.delete(socket)
    socket.destroy()
    this.#refused()
  }
}
