// Calls between two processes of one instance, in both directions. What is sent in one turn of the event loop travels together:
// a message costs as much as ten of the calls in it.
import type { ChildProcess } from 'node:child_process'
import type { EventEmitter } from 'node:events'
import { gatherTurns } from '../turns.ts'
import { StoreUnavailable } from '../store/store.ts'
import { carry, type CarriedError, restore } from './carried-error.ts'

/** What the other process may call here. */
export type Callable = Record<string, (...parameters: never[]) => unknown>

/** One end of the channel that Node opens between a process and its child. */
export type Wire = NodeJS.Process | ChildProcess

type Message = ['call', id: number, name: string, parameters: unknown[]] | ['result', id: number, value: unknown] | ['failure', id: number, error: CarriedError]

/** The other process has ended, so it is unknown what became of the call. */
export class ChannelClosed extends StoreUnavailable {
  override name = 'ChannelClosed'
  constructor() {
    super('the other process of this instance has ended')
  }
}

export class Channel<Theirs extends Callable> {
  readonly #wire: Wire
  readonly #ours: Callable
  readonly #waiting = new Map<number, PromiseWithResolvers<never>>()
  readonly #post: (message: Message) => void
  #lastId = 0

  /** `ours` is what the other process may call. */
  constructor(wire: Wire, ours: Callable) {
    this.#wire = wire
    this.#ours = ours
    this.#post = gatherTurns((messages: readonly Message[]) => this.#send(messages))
    const events: EventEmitter = wire
    events.on('message', (messages: Message[] | string) => {
      // A handle comes with a word.
      if (typeof messages === 'string') return
      for (const message of messages) this.#receive(message)
    })
    events.on('disconnect', () => this.#close())
  }

  /** Rejects with what the other process threw, or with `ChannelClosed` if it has ended. */
  call<Name extends keyof Theirs & string>(name: Name, ...parameters: Parameters<Theirs[Name]>): Promise<Awaited<ReturnType<Theirs[Name]>>> {
    const waiting = Promise.withResolvers<never>()
    const id = (this.#lastId += 1)
    this.#waiting.set(id, waiting)
    this.#post(['call', id, name, parameters])
    return waiting.promise
  }

  #send(messages: readonly Message[]): void {
    if (this.#wire.connected) this.#wire.send!(messages, undefined, undefined, (error) => error && this.#close())
    else this.#close()
  }

  #receive(message: Message): void {
    const [kind, id] = message
    if (kind === 'call') {
      void this.#answer(id, message[2], message[3])
      return
    }
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (kind === 'result') waiting?.resolve(message[2] as never)
    else waiting?.reject(restore(message[2]))
  }

  async #answer(id: number, name: string, parameters: unknown[]): Promise<void> {
    try {
      this.#post(['result', id, await this.#ours[name]!(...(parameters as never[]))])
    } catch (error) {
      this.#post(['failure', id, carry(error as Error)])
    }
  }

  #close(): void {
    for (const { reject } of this.#waiting.values()) reject(new ChannelClosed())
    this.#waiting.clear()
  }
}
