// Which host a connection is opened to, and what is reported of that. With real servers: test/postgres/reports.test.ts.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { FakeServer, settingsOf } from '../../../../test/harness/connections/fake-server.ts'
import { StoreUnavailable } from '../../store.ts'
import { Hosts } from './hosts.ts'

function newHosts(mock: TestContext['mock']) {
  const server = new FakeServer(mock)
  const reported: unknown[] = []
  const hosts = new Hosts(settingsOf('', 'a,b:6000'), ({ level, message, details }) =>
    reported.push([level, message, details]),
  )
  const open = async () => (await hosts.open(() => {})).host
  return { server, hosts, reported, open }
}

const AWAY = new Error('it is away')

describe('Of several hosts of PostgreSQL', () => {
  it('the one that worked last is tried first, and the others after it', async ({ mock }) => {
    const { server, reported, open } = newHosts(mock)
    assert.equal(await open(), 'a:5432')
    assert.deepEqual(reported, [])
    server.refusal = AWAY
    server.refusedHost = 'a:5432'
    assert.equal(await open(), 'b:6000')
    const switched = { host: 'b:6000', before: 'a:5432', role: 'primary' }
    assert.deepEqual(reported, [['notice', 'database server was replaced or restarted', switched]])
    const { attempts } = server
    assert.equal(await open(), 'b:6000')
    assert.equal(server.attempts, attempts + 1)
    server.refusedHost = 'b:6000'
    assert.equal(await open(), 'a:5432')
  })

  it('all are named, with their reasons, if none works; the loss is reported once, and the return too', async ({
    mock,
  }) => {
    const { server, hosts, reported, open } = newHosts(mock)
    server.refusal = AWAY
    await assert.rejects(
      open(),
      new StoreUnavailable('Cannot connect to PostgreSQL at a:5432: it is away; b:6000: it is away'),
    )
    for (let time = 0; time < 2; time += 1) hosts.reportLost('away')
    server.refusal = undefined
    for (let time = 0; time < 2; time += 1) await open()
    assert.deepEqual(reported, [
      ['error', 'database lost', { reason: 'away' }],
      ['notice', 'database found', { host: 'a:5432', before: undefined, role: 'primary' }],
    ])
  })

  it('one that was restarted is reported', async ({ mock }) => {
    const { server, reported, open } = newHosts(mock)
    await open()
    server.facts = { ...server.facts, startedAt: 'today' }
    await open()
    const details = { host: 'a:5432', before: 'a:5432', role: 'primary' }
    assert.deepEqual(reported, [['notice', 'database server was replaced or restarted', details]])
  })

  it('a primary that another was promoted over is not used', async ({ mock }) => {
    const { server, hosts, reported, open } = newHosts(mock)
    const onTimeline = (system: string, number: number) => {
      server.facts = { ...server.facts, timeline: { system, number } }
      return server.facts
    }
    const old = onTimeline('ours', 3)
    await open()
    onTimeline('ours', 4)
    await open()
    assert.ok(hosts.isOutdated(old))
    onTimeline('ours', 3)
    for (let time = 0; time < 2; time += 1)
      await assert.rejects(open(), {
        message: /at a:5432: it is on timeline 3, but 4 was seen before: a primary that was replaced .*; b/,
        publicReason: 'The database is a primary that was replaced.',
      })
    assert.deepEqual(
      server.opened.map(({ closed }) => closed),
      [false, false, true, true, true, true],
    )
    assert.deepEqual(reported, [])
    onTimeline('another cluster', 1)
    assert.equal(await open(), 'a:5432')
    server.facts = { ...server.facts, timeline: undefined }
    assert.equal(await open(), 'a:5432')
    assert.equal(hosts.isOutdated(server.facts), false)
  })
})
