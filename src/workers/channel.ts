// Remote procedure calls between the first process of an instance and a worker, in both directions, over Node's IPC channel: which
// methods each can call in the other, and how. No count is shared: each process applies the limits to its own connections.
import type { ChildProcess } from 'node:child_process'
import { CACHED_MS } from '../accounts/api-keys.ts'
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'

/**
 * Bounds how long a process that hangs delays a scrape or a revocation. A revocation that stops waiting for such a process must be
 * safe: by then that process has no cached key that is still valid.
 */
export const CALL_LIMIT_MS = CACHED_MS + 1000

/** The first process pings every worker this often. */
export const HEARTBEAT_MS = 5000

/** The argument with which the first process starts a worker where program and Node.js are one file (deploy/build-executables.ts). */
export const WORKER_ARGUMENT = 'worker'

/** An event that one process sends to all others of its instance. */
export type Broadcast = 'forgetKeys' | 'flushUsage' | 'giveUpStore'

export type OnBroadcast = Record<Broadcast, () => void | Promise<void>>

/** Resolves when all other processes have handled the event or have not answered in time. */
export type SendBroadcast = (event: Broadcast) => Promise<void>

/** The methods that a worker calls in the first process. */
export type FirstProcessMethods = {
  broadcast: SendBroadcast
  /** Sends the listening socket to the worker, which accepts connections from it as soon as it arrives. */
  sendSocket(): Promise<void>
  /** Whether the first process has opened its store: a worker opens the database after it. */
  isStoreOpen(): boolean
  /** Ends the instance, because the worker cannot continue with its store: a sync has failed. */
  fail(message: string): void
}

/** The methods that the first process calls in a worker. */
export type WorkerMethods = {
  /** Resolves with the worker's version when it accepts connections; at once, without serving, if the first process has another one. */
  start(version: string, config: Config, timeouts: Timeouts | undefined): Promise<string>
  /** Returns if the worker's event loop is not blocked, and tells the worker that the first process's is not. */
  ping(): void
  onBroadcast(event: Broadcast): Promise<void>
  /** Resolves with undefined if metrics are off. */
  snapshot(): Promise<Snapshot | undefined>
  drain(seconds?: number): void
  /** Resolves when requests are answered, usage counts are written and the store is closed; the process then ends. */
  stop(): Promise<void>
}

/** The methods that one process lets the other call, by name. */
export type Methods = Record<string, (...parameters: never[]) => unknown>

type Message =
  | ['call', id: number, name: string, parameters: unknown[]]
  | ['result', id: number, value: unknown]
  | ['failure', id: number, message: string]

/** A call failed in the other process of this instance. */
export class PeerFailed extends Error {
  override name = 'PeerFailed'
}

/** A call has no answer, because the other process of this instance has ended. */
export class PeerEnded extends PeerFailed {
  override name = 'PeerEnded'
  constructor() {
    super('the other process of this instance has ended')
  }
}

export class Channel<Remote extends Methods> {
  readonly #peer: NodeJS.Process | ChildProcess
  readonly #local: Methods
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(peer: NodeJS.Process | ChildProcess, local: Methods) {
    this.#peer = peer
    this.#local = local
    // The listening socket arrives with its own message, the string 'socket'.
    peer.on('message', (message: Message | string) => void (typeof message !== 'string' && this.#receive(message)))
    peer.on('disconnect', () => {
      for (const id of this.#pending.keys()) this.#lose(id)
    })
  }

  /** Calls a method of the other process. Rejects with `PeerFailed` and the message of the error thrown there, or with `PeerEnded`. */
  call<Name extends keyof Remote & string>(
    name: Name,
    ...parameters: Parameters<Remote[Name]>
  ): Promise<Awaited<ReturnType<Remote[Name]>>> {
    const result = Promise.withResolvers<unknown>()
    const id = (this.#lastId += 1)
    this.#pending.set(id, result)
    this.#send(['call', id, name, parameters], () => this.#lose(id))
    return result.promise as Promise<Awaited<ReturnType<Remote[Name]>>>
  }

  #receive(message: Message): void {
    if (message[0] === 'call') return void this.#answer(message[1], message[2], message[3])
    const [kind, id, outcome] = message
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (kind === 'result') pending?.resolve(outcome)
    else pending?.reject(new PeerFailed(outcome))
  }

  async #answer(id: number, name: string, parameters: unknown[]): Promise<void> {
    try {
      this.#send(['result', id, await this.#local[name]!(...(parameters as never[]))])
    } catch (error) {
      this.#send(['failure', id, (error as Error).message])
    }
  }

  #lose(id: number): void {
    this.#pending.get(id)?.reject(new PeerEnded())
    this.#pending.delete(id)
  }

  /** Sends a message; calls `lost` if the other process has disconnected. */
  #send(message: Message, lost = () => {}): void {
    if (this.#peer.connected) this.#peer.send!(message, undefined, {}, (error) => error && lost())
    else lost()
  }
}
