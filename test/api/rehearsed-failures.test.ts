// Rehearsing failures on staging: a client's retries can be tested against the real service.
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { OperationCall } from '../../src/http/call/call.ts'
import { rehearse } from '../../src/http/operations/rehearse.ts'
import { list, RawConnection } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import { countPets, describeOnSqlite, expectError, startPetstore } from '../harness/harness.ts'

const rex = { name: 'Rex', categoryId: 3 }
const asking = (what: string) => ({ 'Petstore-Rehearse': what })

describeOnSqlite('A rehearsed failure', (service) => {
  it('is a 503 or a 429 with Retry-After, and nothing is done', async () => {
    const before = await countPets(service())
    for (const [what, code] of [
      ['503', 'service_unavailable'],
      ['429', 'rate_limited'],
    ] as const) {
      const refused = await service().add(rex, asking(what))
      assert.equal(refused.headers.get('retry-after'), '1')
      assert.match(await expectError(refused, code), /rehearsal/)
      await expectError(await service().call('/pets', { headers: asking(what) }), code)
    }
    assert.equal(await countPets(service()), before)
  })

  it('is a delay, and then the real answer', async () => {
    const started = performance.now()
    assert.equal((await service().call('/pets', { headers: asking('delay=300ms') })).status, 200)
    assert.ok(performance.now() - started >= 299)
  })

  it('is a lost connection before anything is done, or after it is done for good', async () => {
    const before = await countPets(service())
    await assert.rejects(service().add(rex, asking('disconnect')), /fetch failed/)
    assert.equal(await countPets(service()), before)
    const key = { 'Idempotency-Key': `lost-${before}` }
    await assert.rejects(service().add(rex, { ...key, ...asking('disconnect-after-commit') }), /fetch failed/)
    assert.equal(await countPets(service()), before + 1)
    const retried = await service().add(rex, key)
    assert.equal(retried.headers.get('idempotent-replayed'), 'true')
    assert.equal(await countPets(service()), before + 1)
  })

  it('is not asked for by an empty header, which tools send, and none by a delay of nothing', async () => {
    for (const what of ['', 'delay=0s'])
      assert.equal((await service().call('/pets', { headers: asking(what) })).status, 200, what)
  })

  it('needs a good key first', async () => {
    const response = await service().call('/pets', {
      headers: { ...asking('503'), Authorization: 'Bearer nonsense' },
    })
    await expectError(response, 'malformed_api_key')
  })

  it('that cannot be rehearsed is refused with what can be', async () => {
    for (const what of ['500', 'delay=31s', 'delay=2', 'delay=-1s', 'DISCONNECT']) {
      const message = await expectError(await service().call('/pets', { headers: asking(what) }), 'invalid_rehearsal')
      assert.ok(
        message.includes('disconnect-after-commit') && message.endsWith(`got ${JSON.stringify(what)}.`),
        message,
      )
    }
  })
})

describe('Rehearsed failures', () => {
  it('do not exist in production: the header is ignored', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'production' } })
    for (const what of ['503', 'disconnect', 'nonsense'])
      assert.equal((await petstore.call('/pets', { headers: asking(what) })).status, 200)
  })

  it('are labelled in the metrics and in the log, also where the client gets no answer', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    await petstore.call('/pets', { headers: asking('503') })
    await petstore.call('/pets', { headers: asking('delay=300ms') })
    await petstore.call('/pets')
    for (const what of ['disconnect', 'disconnect-after-commit'])
      await assert.rejects(petstore.add(rex, asking(what)), /fetch failed/)
    const lines = petstore.logged.filter(({ operation }) => operation)
    assert.deepEqual(
      lines.map(({ operation, status, rehearsed }) => [operation, status, rehearsed]),
      [
        ['listPets', 503, true],
        ['listPets', 200, true],
        ['listPets', 200, undefined],
        ['createPet', 503, true],
        ['createPet', 201, true],
      ],
    )
    assert.ok(Number(lines[1]!['ms']) >= 250, 'a delay is a part of the time that is logged')
    const metrics = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    for (const { operation, status, rehearsed } of lines) {
      const labels = `operation="${String(operation)}",status="${String(status)}"${rehearsed ? ',rehearsed="yes"' : ''}`
      assert.ok(metrics.includes(`petstore_requests_total{${labels}} 1\n`), labels)
    }
  })

  it('delay no more than 100 requests of a process at a time, and none whose client has gone', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    const inFlight = async () => {
      const page = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
      return Number(/^petstore_requests_in_flight (\d+)$/m.exec(page)?.[1])
    }
    const delayed = Array.from({ length: 100 }, () => new RawConnection(petstore.url))
    for (const each of delayed) each.send(list(petstore.key).replace('\r\n', '\r\nPetstore-Rehearse: delay=30s\r\n'))
    await until(async () => (await inFlight()) === 100)
    const refused = await petstore.call('/pets', { headers: asking('delay=30s') })
    assert.equal(refused.headers.get('retry-after'), '1')
    await expectError(refused, 'rate_limited')
    const [first, ...others] = delayed
    first!.socket.end()
    assert.equal((await first!.answer()).status, 200, 'a half-closed client gets its answer')
    for (const { socket } of others) socket.resetAndDestroy()
    await until(async () => (await inFlight()) === 0)
    assert.equal((await petstore.call('/pets', { headers: asking('delay=1ms') })).status, 200)
  })

  it('delay for at most 30 seconds', async (test) => {
    const { timers } = test.mock
    test.after(() => (timers.reset(), syncBuiltinESMExports()))
    timers.enable({ apis: ['setTimeout'] })
    // Until then, what a file imports by name is the real one.
    syncBuiltinESMExports()
    const ask = async (what: string) =>
      rehearse({ request: { headers: { 'petstore-rehearse': what } } } as unknown as OperationCall)
    for (const [what, ms] of [
      ['delay=1ms', 1],
      ['delay=250ms', 250],
      ['delay=2s', 2000],
      ['delay=30s', 30_000],
      ['delay=30000ms', 30_000],
    ] as const) {
      let isOver = false
      const asked = ask(what).finally(() => (isOver = true))
      timers.tick(ms - 1)
      await setImmediate()
      assert.equal(isOver, false, what)
      timers.tick(1)
      assert.equal(await asked, undefined, what)
    }
    for (const what of ['delay=30001ms', 'delay=31s']) assert.equal((await ask(what))?.code, 'invalid_rehearsal', what)
  })
})
