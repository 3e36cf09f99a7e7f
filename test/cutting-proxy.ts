// A proxy in front of a database for the worst moment, after the request and before the answer: it loses the connection, or
// holds the answer back.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

export interface HeldAnswer {
  /** Resolves once the database has answered. */
  arrived: Promise<void>
  release(): void
}

export interface CuttingProxy extends AsyncDisposable {
  /** The database's address, through the proxy. */
  url: string
  /** The next request reaches the database; its answer never comes back. */
  cutNextAnswer(): void
  /** The next request reaches the database; its answer waits here until it is released. */
  holdNextAnswer(): HeldAnswer
}

export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  const target = new URL(databaseUrl)
  let armed = false
  let next: ((pass: () => void) => void) | undefined
  const proxy = createServer((client) => {
    const database = connect(Number(target.port), target.hostname)
    let cut = false
    let hold: typeof next
    client.on('data', (bytes) => {
      cut ||= armed
      armed = false
      hold = next
      next = undefined
      database.write(bytes)
    })
    database.on('data', (bytes) => {
      if (cut) client.destroy()
      else if (hold !== undefined) hold(() => client.write(bytes))
      else client.write(bytes)
    })
    for (const [one, other] of [[client, database], [database, client]] as const) {
      one.on('close', () => other.destroy())
      one.on('error', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(databaseUrl)
  url.port = String((proxy.address() as AddressInfo).port)
  return {
    url: url.href,
    cutNextAnswer() {
      armed = true
    },
    holdNextAnswer() {
      const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      next = (pass) => {
        arrived.resolve()
        void released.promise.then(pass)
      }
      return { arrived: arrived.promise, release: released.resolve }
    },
    async [Symbol.asyncDispose]() {
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
