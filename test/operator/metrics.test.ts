// What an operator sees: metrics on the admin port, and log lines that say what is wrong without flooding the log.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { VERSION } from '../../src/contract/operations.ts'
import { createMetrics } from '../../src/http/metrics.ts'
import type { Store } from '../../src/store/store.ts'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { postgres } from '../harness/databases/engines.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { createHead, RawConnection } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'

const ADMIN = { PETSTORE_ADMIN_PORT: '0' }
const REX = { name: 'Rex', categoryId: 1 }

/** The samples of a scrape, by name and labels as they are written. */
async function scrape({ adminUrl }: Petstore): Promise<Map<string, number>> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return new Map([...text.matchAll(/^([^#\s].*) (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]))
}

/** Counts what this work adds to each sample. */
async function increaseBy(petstore: Petstore, work: () => Promise<void>): Promise<(name: string) => number> {
  const earlier = await scrape(petstore)
  await work()
  const later = await scrape(petstore)
  return (name) => (later.get(name) ?? 0) - (earlier.get(name) ?? 0)
}

describe('The metrics', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore({ env: ADMIN })
  })
  after(() => petstore[Symbol.asyncDispose]())
  const sample = async (name: string) => (await scrape(petstore)).get(name)

  it('count server errors from zero', async () => {
    for (const status of [500, 503])
      assert.equal(await sample(`petstore_requests_total{operation="createPet",status="${status}"}`), 0)
  })

  it('measure requests up to 30 seconds, by class of status', async () => {
    const increase = await increaseBy(petstore, async () => {
      await petstore.call('/pets', { headers: { 'Petstore-Rehearse': 'delay=300ms' } })
      await petstore.call('/pets/9')
    })
    const lists = (part: string) =>
      increase(`petstore_request_duration_seconds_${part}operation="listPets",class="2xx"}`)
    assert.ok(lists('sum{') >= 0.3 && lists('sum{') < 30, `${lists('sum{')} seconds`)
    assert.deepEqual([lists('bucket{le="0.25",'), lists('bucket{le="30",')], [0, 1])
    assert.equal(increase('petstore_request_duration_seconds_count{operation="getPet",class="4xx"}'), 1)
  })

  it('show connections, requests in flight, readiness and the version that runs', async () => {
    const connections = async () => (await sample('petstore_connections'))!
    // Those of fetch, which are kept open.
    const others = await connections()
    using idle = new RawConnection(petstore.url)
    idle.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await idle.answer()
    using running = new RawConnection(petstore.url)
    running.send(`${createHead(petstore.key, 'x'.repeat(99))}{`)
    await until(async () => (await sample('petstore_requests_in_flight')) === 1, 'a request is in flight')
    assert.equal(await connections(), others + 2)
    const samples = await scrape(petstore)
    assert.equal(samples.get('petstore_ready'), 1)
    assert.equal(samples.get(`petstore_build_info{version="${VERSION}"}`), 1)
    assert.ok(samples.has('nodejs_eventloop_lag_p99_seconds'))
    idle[Symbol.dispose]()
    await until(async () => (await connections()) === others + 1, 'a closed connection no longer counts')
  })

  it('show how often an answer came from the cache, not for probes and pages, and how many writes shared a commit', async () => {
    const increase = await increaseBy(petstore, async () => {
      await Promise.all(Array.from({ length: 20 }, () => petstore.add(REX)))
      for (let time = 0; time < 5; time += 1) await petstore.call('/pets?limit=3')
      assert.equal((await fetch(`${petstore.url}/v1/pets`)).status, 401, 'counts as neither')
      for (const path of ['/livez', '/readyz', '/openapi.json', '/nothing']) await fetch(petstore.url + path)
    })
    const lookups = (result: string) => increase(`petstore_cache_lookups_total{result="${result}"}`)
    // Usage counts may be written meanwhile, which moves the store's version.
    assert.ok(lookups('hit') >= 1 && lookups('hit') <= 3, `${lookups('hit')} answers came from the cache`)
    assert.equal(lookups('hit') + lookups('miss'), 5)
    const [commits, writes] = [increase('petstore_commits_total'), increase('petstore_committed_writes_total')]
    assert.ok(writes >= 20, `20 creates, counted as ${writes} writes`)
    assert.ok(commits >= 1 && commits <= writes)
  })

  it('count a request whose body breaks off before its answer once, as it was answered', async () => {
    const logged = petstore.logged.length
    const increase = await increaseBy(petstore, async () => {
      using connection = new RawConnection(petstore.url)
      connection.send('GET /readyz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n')
      assert.equal((await connection.answer()).status, 400)
      await connection.closed()
      await petstore.call('/pets')
    })
    const statuses = petstore.logged.slice(logged).filter(({ path }) => path !== '/metrics')
    assert.deepEqual(
      statuses.flatMap(({ status }) => status ?? []),
      [400, 200],
    )
    const count = (status: number) => increase(`petstore_requests_total{operation="none",status="${status}"}`)
    assert.deepEqual([count(400), count(200)], [1, 1], 'one is that of the scrape')
  })

  it('show each state of the connections to the database, and only the server of now, not the one before a failover', async (context) => {
    for (const host of ['first:5432', 'second:5432']) {
      const server = { host, role: 'primary' as const, startedAt: '1', timeline: 2 }
      const stats = { inUse: 2, idle: 3, parked: 4, waiting: 5, servers: [server, server] }
      const connected = context.mock.method(petstore.store, 'connections', () => stats)
      const ofDatabase = [...(await scrape(petstore))].filter(([name]) => name.startsWith('petstore_database_'))
      assert.deepEqual(Object.fromEntries(ofDatabase), {
        'petstore_database_connections{state="in_use"}': 2,
        'petstore_database_connections{state="idle"}': 3,
        'petstore_database_connections{state="parked"}': 4,
        petstore_database_calls_waiting: 5,
        [`petstore_database_info{host="${host}",role="primary",server="1",timeline="2"}`]: 1,
      })
      connected.mock.restore()
    }
  })

  it('of several processes are added up, but all of them use one database server', async () => {
    const [one, other] = [createMetrics(), createMetrics()]
    const servers = [{ host: 'db:5432', role: 'primary', startedAt: '1', timeline: undefined }]
    const stats = { inUse: 1, idle: 2, parked: 0, waiting: 0, servers }
    const store = { connections: () => stats, commits: () => ({ commits: 0, writes: 0 }) } as unknown as Store
    for (const metrics of [one, other]) metrics.watchStore(store)
    const page = await one.render([await other.snapshot()])
    assert.match(page, /^petstore_database_info\{host="db:5432",role="primary",server="1",timeline=""\} 1$/m)
    assert.match(page, /^petstore_database_connections\{state="idle"\} 4$/m)
  })

  it('say in which format they are, which Prometheus needs, and have no CORS headers: a page of another origin cannot read them', async () => {
    const { headers: ofPage } = await fetch(`${petstore.adminUrl}/metrics`)
    assert.equal(ofPage.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    for (const path of ['/metrics', '/livez', '/readyz', '/nothing']) {
      const { headers } = await fetch(petstore.adminUrl + path, { headers: { Origin: 'https://shop.example' } })
      const ofCors = [...headers.keys()].filter((name) => name.startsWith('access-control-'))
      assert.deepEqual(ofCors, [], path)
    }
  })

  it('show that readiness ends with the first word of a stop', async () => {
    // The last case of this service.
    const drained = petstore.drain(0.5)
    assert.equal(await sample('petstore_ready'), 0)
    await drained
  })
})

describe('The metrics on PostgreSQL', () => {
  it('show its connections, which server they lead to, and what the alerts and the dashboard ask for, with its labels, and no more', async () => {
    await using petstore = await startPetstore({ engine: postgres, env: ADMIN })
    await petstore.call('/pets')
    await petstore.call('/pets/1')
    await Promise.all(Array.from({ length: 20 }, () => petstore.add(REX)))
    const scraped = await scrape(petstore)
    assert.ok(scraped.get('petstore_database_connections{state="idle"}')! >= 1)
    assert.equal(scraped.get('petstore_database_connections{state="parked"}'), 0)
    assert.equal(scraped.get('petstore_database_calls_waiting'), 0)
    assert.equal(scraped.get('petstore_committed_writes_total'), 20)
    const samples = [...scraped.keys()]
    assert.ok(
      samples.some((name) =>
        /^petstore_database_info\{host=".+:\d+",role="primary",server="\d{16}",timeline="1"\}$/.test(name),
      ),
    )
    const alerts = readFileSync(new URL('../../deploy/alerts.yaml', import.meta.url), 'utf8').replaceAll(/#.*/g, '')
    const expressions = [...alerts.matchAll(/expr: (?:\|\n)?([^]*?)\n {8}(?=\S)/g)].map(([, expression]) => expression!)
    const dashboard = readFileSync(new URL('../../deploy/grafana-dashboard.json', import.meta.url), 'utf8')
    const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] }
    const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    assert.ok(shown.length > 10)
    const asked = [...expressions, ...shown].flatMap((expression) => [
      ...expression.matchAll(/\b((?:petstore|nodejs|process)_\w+)(?:\{(.*?)\})?/g),
    ])
    assert.ok(asked.length >= expressions.length + shown.length - 1, 'all but `up` are ours')
    const answering = new Set(asked.map(([, name = '']) => name.replace(/_bucket$/, '')))
    const own = (await (await fetch(`${petstore.adminUrl}/metrics`)).text()).matchAll(/^# TYPE (petstore_\w+)/gm)
    assert.deepEqual(
      Array.from(own, ([, name = '']) => name).filter((name) => !answering.has(name)),
      [],
      'each of ours is asked for by an alert or the dashboard',
    )
    const sources = globSync(new URL('../../src/**/*.ts', import.meta.url).pathname).map((file) =>
      readFileSync(file, 'utf8'),
    )
    for (const method of Object.keys(createMetrics()))
      assert.ok(
        sources.some((source) => new RegExp(`metrics[?!]?\\.${method}\\b`).test(source)),
        `${method} is called`,
      )
    const unit = readFileSync(new URL('../../deploy/petstore-backup.service', import.meta.url), 'utf8')
    for (const [, name = '', matchers = ''] of asked) {
      // The timer's unit writes the age of the last backup for the node exporter.
      if (unit.includes(name)) continue
      // The job is Prometheus's own label, and `rehearsed` is absent unless a failure was asked for.
      const labels = [...matchers.matchAll(/(\w+)=~?/g)]
        .map(([, label]) => label!)
        .filter((label) => label !== 'job' && label !== 'rehearsed')
      const found = samples.some(
        (sample) => sample.split('{')[0] === name && labels.every((label) => sample.includes(`${label}="`)),
      )
      assert.ok(found, `${name} with ${labels.join(', ')}`)
    }
  })
})

describe('A server of PostgreSQL', () => {
  it('is told from others by what it says of itself, whatever its name and the settings of a session', async () => {
    await using database = await postgres.newDatabase()
    const servers = []
    for (const host of ['127.0.0.1', 'localhost']) {
      await using petstore = await startPetstore({ database: database.url.replace('127.0.0.1', host), env: ADMIN })
      await petstore.call('/pets')
      servers.push(...[...(await scrape(petstore)).keys()].flatMap((name) => /server="(\d+)"/.exec(name)?.[1] ?? []))
      await askPostgres(
        database.url,
        `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET timezone = 'Asia/Tokyo'`,
      )
    }
    assert.deepEqual(servers, [servers[0], servers[0]])
  })
})

describe('The log', () => {
  it('has one line without a stack for many requests that find no database, and /readyz and the metrics say so', async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    await using petstore = await startPetstore({ database: proxy.url, env: ADMIN })
    await petstore.call('/pets')
    proxy.goAway()
    for (let time = 0; time < 10; time += 1) assert.equal((await petstore.add(REX)).status, 503)
    const lines = petstore.logged.filter(({ msg }) => msg === 'the database is unavailable')
    assert.equal(lines.length, 1)
    assert.match(String(lines[0]!['reason']), /PostgreSQL/)
    assert.ok(!('error' in lines[0]!), 'no stack')
    assert.equal(lines[0]!['level'], 'error')
    assert.match(await (await fetch(`${petstore.url}/readyz`)).text(), /The database does not answer/)
    const samples = await scrape(petstore)
    assert.equal(samples.get('petstore_ready'), 0)
    assert.equal(samples.get('petstore_requests_total{operation="createPet",status="503"}'), 10)
    assert.equal(samples.get('petstore_request_duration_seconds_count{operation="createPet",class="5xx"}'), 10)
    proxy.comeBack()
  })

  it('reports once that the use of keys cannot be written, however often that fails', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using petstore = await startPetstore()
    const write = mock.method(petstore.store.accounts, 'recordUsage', () => Promise.reject(new Error('away')))
    await petstore.call('/pets')
    for (let failed = 1; failed <= 3; failed += 1) {
      mock.timers.tick(2000)
      await until(() => write.mock.callCount() === failed, 'it is tried again')
    }
    // The stop needs it to close idle connections.
    mock.timers.reset()
    const lines = petstore.logged.filter(({ msg }) => String(msg).includes('could not be written'))
    assert.deepEqual(
      lines.map(({ level, error }) => [level, (error as Error).message]),
      [['error', 'away']],
    )
  })

  it('has the trace id of a request that carries a well-formed traceparent', async () => {
    await using petstore = await startPetstore()
    const id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const sent = [
      `00-${id}-00f067aa0ba902b7-01`,
      `ff-${id}-00f067aa0ba902b7-01`,
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `00-${id}-${'0'.repeat(16)}-01`,
      `00-${id}-00f067aa0ba902b7-01x`,
      `00-${id}`,
      undefined,
      `01-${id}-00f067aa0ba902b7-01-of-a-later-version`,
    ]
    for (const traceparent of sent) await petstore.call('/pets', { headers: { ...(traceparent && { traceparent }) } })
    const lines = petstore.logged.filter(({ operation }) => operation === 'listPets')
    assert.deepEqual(
      lines.map(({ traceId }) => traceId),
      [id, undefined, undefined, undefined, undefined, undefined, undefined, id],
    )
  })
})
