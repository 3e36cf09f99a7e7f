// petstore health, which the health checks of containers call.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { freePort } from '../harness/connections/free-port.ts'
import { startPetstore } from '../harness/harness.ts'
import { petstore as command } from '../harness/programs/in-process-command.ts'

it('petstore health tells whether the service is ready, on the admin port if there is one', async () => {
  await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' }, config: { workers: 1 } })
  const ports = { PORT: new URL(petstore.url).port, PETSTORE_ADMIN_PORT: new URL(petstore.adminUrl!).port }
  const health = async (env: Record<string, string>) => {
    const { code, stderr } = await command(['health'], { env })
    return [code, stderr]
  }
  const [url, adminUrl] = [`http://127.0.0.1:${ports.PORT}`, `http://127.0.0.1:${ports.PETSTORE_ADMIN_PORT}`]
  assert.deepEqual(await health({ PORT: ports.PORT }), [0, `${url}/readyz is ready.\n`])
  assert.deepEqual(await health(ports), [0, `${adminUrl}/readyz is ready.\n`])

  await petstore.store.close()
  const [code, message] = await health({ PORT: ports.PORT })
  assert.equal(code, 1)
  assert.match(String(message), /readyz answers 503: the service is not ready\.\n/)
  const away = String(await freePort())
  assert.deepEqual(await health({ PORT: away }), [
    1,
    `petstore: http://127.0.0.1:${away}/readyz does not answer: connect ECONNREFUSED 127.0.0.1:${away}. Another port? Set --port or PORT.\n`,
  ])
})
