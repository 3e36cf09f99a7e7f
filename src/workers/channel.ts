// Remote procedure calls between the first process of an instance and a worker, in both directions, over Node's IPC channel.
import type { ChildProcess } from 'node:child_process'

/** The methods that one process lets the other call, by name. */
export type Methods = Record<string, (...parameters: never[]) => unknown>

type Message =
  | ['call', id: number, name: string, parameters: unknown[]]
  | ['result', id: number, value: unknown]
  | ['failure', id: number, message: string]

/** A call has no answer, because the other process of this instance has ended. */
export class PeerEnded extends Error {
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

  /** Calls a method of the other process. Rejects with the message of the error thrown there, or with `PeerEnded`. */
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
    if (message[0] === 'call') void this.#answer(message[1], message[2], message[3])
    else this.#settle(message)
  }

  async #answer(id: number, name: string, parameters: unknown[]): Promise<void> {
    try {
      this.#send(['result', id, await this.#local[name]!(...(parameters as never[]))])
    } catch (error) {
      this.#send(['failure', id, (error as Error).message])
    }
  }

  #settle([kind, id, outcome]: Exclude<Message, ['call', ...unknown[]]>): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (kind === 'result') pending?.resolve(outcome)
    else pending?.reject(new Error(outcome))
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
