// An instance on an inherited listening socket that outlives it: during a restart, new connections wait in the kernel.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { settings } from './instance.ts'
import { start } from './processes.ts'
import { until } from '../until.ts'

const HOLDER = fileURLToPath(new URL('socket-holder.ts', import.meta.url))

export class HeldInstance implements AsyncDisposable {
  readonly #holder: ChildProcess
  readonly #log: string

  static async start(
    database: string,
    log: string,
    env: Record<string, string> = {},
    main: readonly string[] = [],
  ): Promise<HeldInstance> {
    const instance = new HeldInstance(
      start(process.execPath, [HOLDER, ...main], { env: { ...settings(database), ...env }, log }),
      log,
    )
    try {
      await until(() => instance.#isReady(), 'the instance is ready')
      return instance
    } catch (error) {
      await instance[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(holder: ChildProcess, log: string) {
    this.#holder = holder
    this.#log = log
  }

  get url(): string {
    return `http://127.0.0.1:${this.#numbers[0]}`
  }

  /** Sends the signal to the service; resolves when the next process is ready. */
  async restart(signal: NodeJS.Signals): Promise<void> {
    const before = this.#numbers
    process.kill(before.at(-1)!, signal)
    await until(() => this.#numbers.length > before.length, 'the next process is started')
    await until(() => this.#isReady(), 'the next process is ready')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The holder has already ended if the service could not start.
    if (this.#holder.exitCode !== null) return
    this.#holder.kill('SIGKILL')
    await once(this.#holder, 'exit')
    process.kill(this.#numbers.at(-1)!, 'SIGKILL')
  }

  /** The lines in the log that the holder printed: its port, and then the id of each service process. */
  get #numbers(): number[] {
    return (readFileSync(this.#log, 'utf8').match(/^\d+$/gm) ?? []).map(Number)
  }

  async #isReady(): Promise<boolean> {
    return (await fetch(`${this.url}/readyz`, { headers: { Connection: 'close' } })).ok
  }
}
