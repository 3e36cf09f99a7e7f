// Calls between the first process of an instance and a worker, in both directions.
import type { ChildProcess } from 'node:child_process'

/** What the other side may call here, by name. */
export type Callable = Record<string, (...parameters: never[]) => unknown>

type Message =
  | ['call', id: number, name: string, parameters: unknown[]]
  | ['result', id: number, value: unknown]
  | ['failure', id: number, message: string]

const ENDED = 'the other process of this instance has ended'

export class Channel<Theirs extends Callable> {
  readonly #end: NodeJS.Process | ChildProcess
  readonly #ours: Callable
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(end: NodeJS.Process | ChildProcess, ours: Callable) {
    this.#end = end
    this.#ours = ours
    // The listening socket arrives with a message of its own, a word.
    end.on('message', (message: Message | string) => void (typeof message !== 'string' && this.#receive(message)))
    end.on('disconnect', () => {
      for (const id of this.#waiting.keys()) this.#settle(['failure', id, ENDED])
    })
  }

  /** Rejects with a plain error: with the message of what the other side threw, or if that side has ended. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    ...parameters: Parameters<Theirs[Name]>
  ): Promise<Awaited<ReturnType<Theirs[Name]>>> {
    const waiting = Promise.withResolvers<unknown>()
    const id = (this.#lastId += 1)
    this.#waiting.set(id, waiting)
    this.#send(['call', id, name, parameters], () => this.#settle(['failure', id, ENDED]))
    return waiting.promise as Promise<Awaited<ReturnType<Theirs[Name]>>>
  }

  #receive(message: Message): void {
    if (message[0] === 'call') void this.#answer(message[1], message[2], message[3])
    else this.#settle(message)
  }

  async #answer(id: number, name: string, parameters: unknown[]): Promise<void> {
    try {
      this.#send(['result', id, await this.#ours[name]!(...(parameters as never[]))])
    } catch (error) {
      this.#send(['failure', id, (error as Error).message])
    }
  }

  #settle([kind, id, outcome]: Exclude<Message, ['call', ...unknown[]]>): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (kind === 'result') waiting?.resolve(outcome)
    else waiting?.reject(new Error(outcome))
  }

  /** Calls `lost` if the other side can't be reached any more. */
  #send(message: Message, lost = () => {}): void {
    if (this.#end.connected) this.#end.send!(message, undefined, {}, (error) => error && lost())
    else lost()
  }
}
