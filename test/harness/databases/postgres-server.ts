// Starts a PostgreSQL 18 from an npm package, as any user, for tests, drills and benches. It ends with this process.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface PostgresServer {
  /** The address of the server's database `postgres`. */
  url: string
  /** The process above all processes of the server. */
  pid: number
  /** Ends the server immediately, without a checkpoint (SIGQUIT); it keeps its files. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Makes the server hang: connections stay open, but it does not answer. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Ends the server and removes its files. */
  end(): Promise<void>
}

/**
 * Starts a server. With `tls` it also accepts encrypted connections, with the certificate of test-certificate.ts. A
 * setting such as `fsync=on` overrides those that make tests fast.
 */
export async function startPostgres(...words: ('tls' | `${string}=${string}`)[]): Promise<PostgresServer> {
  // `detached` gives it its own process group: Ctrl-C during the tests must not end it before it has cleaned up.
  const keeper = spawn(process.execPath, [fileURLToPath(new URL('postgres-keeper.ts', import.meta.url)), ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  const lines = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]()
  const gone = new Promise<void>((resolve) => {
    keeper.once('exit', () => resolve())
  })
  const nextLine = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the PostgreSQL for tests did not come up; its reason is above')
    return value
  }
  const tell = (command: string) => async () => {
    keeper.stdin.write(command + '\n')
    await nextLine()
  }
  const url = await nextLine()
  // Must not keep the event loop of this process alive.
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stdout]) (stream as unknown as { unref(): void }).unref()
  return {
    url,
    pid: keeper.pid!,
    stop: tell('stop'),
    start: tell('start'),
    pause: tell('pause'),
    resume: tell('resume'),
    async end() {
      keeper.ref()
      keeper.stdin.end()
      await gone
    },
  }
}
