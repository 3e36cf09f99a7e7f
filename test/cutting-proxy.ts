// A proxy in front of a database that loses a connection at the worst moment: after the request, before the answer.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

export interface CuttingProxy extends AsyncDisposable {
  /** The database's address, through the proxy. */
  url: string
  /** The next request reaches the database; its answer never comes back. */
  cutNextAnswer(): void
}

export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  const target = new URL(databaseUrl)
  let armed = false
  const proxy = createServer((client) => {
    const database = connect(Number(target.port), target.hostname)
    let cut = false
    client.on('data', (bytes) => {
      cut ||= armed
      armed = false
      database.write(bytes)
    })
    database.on('data', (bytes) => (cut ? client.destroy() : client.write(bytes)))
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
    async [Symbol.asyncDispose]() {
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
