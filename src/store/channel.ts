// Calls between two processes or threads of one instance, in both directions. What is sent in one turn of the event loop
// travels together: a message costs as much as ten of the calls in it.
import type { ChildProcess } from 'node:child_process'
import type { EventEmitter } from 'node:events'
import type { MessagePort, Worker } from 'node:worker_threads'
import { gatherTurns } from '../turns.ts'
import { StoreUnavailable } from './store.ts'
import { carry, type CarriedError, restore } from './carried-error.ts'

/** What the other side may call here. */
export type Callable = Record<string, (...parameters: never[]) => unknown>

/** One end of what carries messages. */
export interface Wire {
  events: Pick<EventEmitter, 'on'>
  /** Calls `lost` if the other side can't be reached any more. */
  send(message: readonly Message[], lost: () => void): void
}

/** Between a process and its child. */
export function processWire(end: NodeJS.Process | ChildProcess): Wire {
  return {
    events: end,
    send(message, lost) {
      if (end.connected) end.send!(message, undefined, undefined, (error) => error && lost())
      else lost()
    },
  }
}

/** Between a thread and the one that started it. */
export function threadWire(end: MessagePort | Worker): Wire {
  return { events: end as Pick<EventEmitter, 'on'>, send: (message) => end.postMessage(message, []) }
}

type Message =
  | ['call', id: number, name: string, parameters: unknown[]]
  | ['result', id: number, value: unknown]
  | ['failure', id: number, error: CarriedError]

/** The other side has ended, so it is unknown what became of the call. */
export class ChannelClosed extends StoreUnavailable {
  override name = 'ChannelClosed'
  constructor() {
    super('the other process of this instance has ended')
  }
}

export class Channel<Theirs extends Callable> {
  readonly #ours: Callable
  readonly #waiting = new Map<number, PromiseWithResolvers<never>>()
  readonly #post: (message: Message) => void
  #lastId = 0

  /** `ours` is what the other side may call. */
  constructor(wire: Wire, ours: Callable) {
    this.#ours = ours
    this.#post = gatherTurns((messages: readonly Message[]) => wire.send(messages, () => this.#close()))
    wire.events.on('message', (messages: Message[] | string) => {
      // A handle comes with a word.
      if (typeof messages === 'string') return
      for (const message of messages) this.#receive(message)
    })
    wire.events.on('disconnect', () => this.#close())
  }

  /** Rejects with what the other side threw, or with `ChannelClosed` if it has ended. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    ...parameters: Parameters<Theirs[Name]>
  ): Promise<Awaited<ReturnType<Theirs[Name]>>> {
    const waiting = Promise.withResolvers<never>()
    const id = (this.#lastId += 1)
    this.#waiting.set(id, waiting)
    this.#post(['call', id, name, parameters])
    return waiting.promise
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
