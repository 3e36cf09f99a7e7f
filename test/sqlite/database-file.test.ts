// The database file in trouble: not ours, newer, read-only, full, locked. A clear message, or 503; never a damaged file.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { collect } from '../harness/programs/processes.ts'
import { until } from '../harness/until.ts'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { countPets, expectError, startPetstore } from '../harness/harness.ts'

const REX = '{"name":"Rex","categoryId":1}'
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
/** Permissions do not stop root. It stays root without that power, since another user may not be able to read this checkout. */
const bound = isRoot ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []

/** Checks that the database is not damaged; returns how many animals it has. */
function animalsIn(path: string): unknown {
  using db = new DatabaseSync(path)
  assert.equal(db.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok')
  assert.deepEqual(db.prepare('PRAGMA foreign_key_check').all(), [])
  return db.prepare('SELECT count(*) AS animals FROM pets').get()?.['animals']
}

async function madeDatabase(folder: Folder, name: string): Promise<string> {
  await folder.commands.call(0, `migrate --database sqlite:${folder.at(name)}`)
  return folder.at(name)
}

/** The calls that a service on a folder's database answers. */
function callsTo(url: string, key: string) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  return {
    list: () => fetch(`${url}/v1/pets`, { headers }),
    add: (body = REX) => fetch(`${url}/v1/pets`, { method: 'POST', body, headers }),
  }
}

async function expectUnavailable(answer: Response): Promise<void> {
  assert.ok(answer.headers.has('retry-after'))
  await expectError(answer, 'service_unavailable')
}

/** Every command that opens it says this, with exit code 1, and the file stays as it was. */
async function refused(folder: Folder, path: string, message: RegExp, wrap: readonly string[] = []): Promise<void> {
  const before = readFileSync(path)
  for (const words of [
    ['serve', '--port', '0'],
    ['account', 'list'],
    ['import', '-', '--format', 'csv', '--dry-run'],
  ]) {
    const call = [...words, '--database', `sqlite:${path}`]
    const input = 'name,categoryId\nRex,1\n'
    const ended = wrap.length === 0 ? folder.runInProcess(call, { input }) : folder.run(call, { wrap, input })
    const { code, stdout, stderr } = await ended
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(stderr, message)
    assert.equal(stderr.split('\n').length, 2, 'one line')
  }
  assert.ok(readFileSync(path).equals(before), 'the file was changed')
}

describe('A database file', { concurrency: 3 }, () => {
  const mayNotWrite = (what: string) =>
    new RegExp(`may not write to .*${what}; the file, its -wal and -shm, and its folder must be writable\\.\\n$`)

  it('that is no database, cut off, of another program however that marks it, or newer is refused and left alone', async () => {
    await using folder = await Folder.create()
    const withSql = (name: string, sql: string) => {
      using db = new DatabaseSync(folder.at(name))
      db.exec(sql)
    }
    folder.write('letter.txt', 'Dear Sir or Madam, '.repeat(100))
    withSql('table.db', 'CREATE TABLE pets (id INTEGER PRIMARY KEY)')
    withSql('id.db', 'PRAGMA application_id = 7')
    withSql('version.db', 'CREATE TABLE x (y); PRAGMA user_version = 1')
    for (const name of ['newer.db', 'cut.db']) await madeDatabase(folder, name)
    withSql('newer.db', "INSERT INTO store_migrations VALUES (999, 'from the future', 999, '', 0)")
    truncateSync(folder.at('cut.db'), 5000)
    const foreign = /is a SQLite database of another program; nothing in it was changed\. Name another file\.\n$/
    const refusals = {
      'letter.txt': /^petstore: Cannot open the database .*letter\.txt: it is not a SQLite database/,
      'table.db': foreign,
      'id.db': foreign,
      'version.db': foreign,
      'newer.db':
        /has schema version 999, this program knows only up to \d+\. Run the newer program that wrote it; nothing was changed\.\n$/,
      'cut.db': /^petstore: Cannot open the database .*(?:damaged|disk)/,
    }
    for (const [file, message] of Object.entries(refusals)) await refused(folder, folder.at(file), message)
    assert.deepEqual(folder.names(), Object.keys(refusals).toSorted())
  })

  it('of 0 bytes, and a log without its database, are refused and left alone: no store begins in their place', async () => {
    await using folder = await Folder.create()
    for (const name of ['zero.db', 'lost.db-wal', 'none.db', 'none.db-wal'])
      folder.write(name, name.endsWith('-wal') ? 'of a database that is gone' : '')
    const refusals = {
      'zero.db': /zero\.db is empty, not a store\. Restore a backup to it; or remove it to begin a new store\.\n$/,
      'lost.db': /lost\.db-wal is a log without its database: .*lost\.db is missing\. /,
      'none.db': /none\.db-wal is a log without its database: .*none\.db is empty\. /,
    }
    for (const line of ['serve --port 0', 'migrate', 'backup copy.db'])
      for (const [name, message] of Object.entries(refusals))
        await folder.commands.refused(1, `${line} --database sqlite:${name}`, message)
    assert.deepEqual(folder.names(), ['lost.db-wal', 'none.db', 'none.db-wal', 'zero.db'])
  })

  it('that can not be written, or whose folder can not, is refused', async () => {
    await using folder = await Folder.create()
    chmodSync(folder.path, 0o755)
    const home = folder.at('home')
    mkdirSync(home)
    const path = await madeDatabase(folder, 'home/pets.db')
    chmodSync(path, 0o444)
    await refused(folder, path, mayNotWrite('pets\\.db'), bound)
    chmodSync(path, 0o666)
    chmodSync(home, 0o555)
    await refused(folder, path, mayNotWrite('home'), bound)
    const { code, stderr } = await folder.run(['serve', '--port', '0', '--database', `sqlite:${home}/deeper/pets.db`], {
      wrap: bound,
    })
    assert.equal(code, 1)
    assert.match(stderr, /^petstore: Cannot open the database .*: EACCES: permission denied/)
    chmodSync(home, 0o755)
  })

  it('is not damaged where only its log is not writable: serve and the doctor name the log, and nothing advises to move it away', async () => {
    await using folder = await Folder.create()
    const path = await madeDatabase(folder, 'home/pets.db')
    using db = new DatabaseSync(path)
    db.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")
    chmodSync(`${path}-wal`, 0o444)
    await refused(folder, path, /may not write to .*pets\.db-wal; the file,/, bound)
    const { code, stdout } = await folder.run(['doctor', '--database', `sqlite:${path}`], { wrap: bound })
    assert.equal(code, 1)
    assert.match(stdout, /problem +File modes .*pets\.db-wal/)
    assert.doesNotMatch(stdout, /restore/)
    chmodSync(`${path}-wal`, 0o644)
  })

  it('behind a symbolic link needs a writable folder; the folder of the link need not be writable', async () => {
    await using folder = await Folder.create()
    const path = await madeDatabase(folder, 'home/pets.db')
    const [home, links, link] = [folder.at('home'), folder.at('links'), folder.at('links/pets.db')]
    mkdirSync(links)
    symlinkSync(path, link)
    try {
      chmodSync(links, 0o555)
      const words = ['seed', '--count', '1', '--database', `sqlite:${link}`]
      const { code, stderr } = await folder.run(words, { wrap: bound })
      assert.equal(code, 0, stderr)
      chmodSync(home, 0o555)
      await refused(folder, link, mayNotWrite('home'), bound)
    } finally {
      for (const place of [links, home]) chmodSync(place, 0o755)
    }
  })

  if (isRoot)
    it('of another user is neither damaged nor missing, to the doctor and to every command', async () => {
      await using folder = await Folder.create()
      const path = await madeDatabase(folder, 'home/pets.db')
      const words = ['doctor', '--database', `sqlite:${path}`]
      for (const place of [path, folder.at('home')]) {
        chownSync(place, NOBODY, NOBODY)
        const { code, stdout } = await folder.run(words, { wrap: bound })
        assert.equal(code, 1)
        assert.match(stdout, /problem {2}File modes .*\n.*→ Run this as the user of the service/)
        assert.doesNotMatch(stdout, /damage|missing/)
      }
      for (const line of ['account list', 'backup copy.db', `restore ${path} --database sqlite:new.db`]) {
        const database = line.startsWith('restore') ? [] : ['--database', `sqlite:${path}`]
        const { code, stderr } = await folder.run([...line.split(' '), ...database], { wrap: bound })
        assert.equal(code, 1, line)
        assert.match(stderr, /permission denied|may not write/, line)
      }
    })

  it('in a place that is none is refused', async () => {
    await using folder = await Folder.create()
    for (const path of [folder.path, '/dev/null/pets.db'])
      await folder.commands.refused(1, `migrate --database sqlite:${path}`, /^petstore: Cannot open the database /)
  })

  it('is made once where several processes start at the same time', async () => {
    await using folder = await Folder.create()
    const commands = Array.from({ length: 5 }, (_, index) =>
      index % 2 === 0 ? ['migrate'] : ['seed', '--count', '10'],
    )
    const results = await Promise.all(commands.map((words) => folder.run(words)))
    for (const [index, words] of commands.entries()) {
      const { code, stderr } = results[index]!
      // A slow machine may let one wait too long for the lock: then it has changed nothing.
      const { code: lastCode } = stderr.includes('holds its lock') ? await folder.run(words) : { code }
      assert.equal(lastCode, 0, stderr)
    }
    assert.equal(animalsIn(folder.at('data/petstore.db')), 20)
  })
})

describe('The files of a database', { concurrency: 3 }, () => {
  const modes = (place: string) =>
    Object.fromEntries(readdirSync(place).map((name) => [name, (statSync(join(place, name)).mode & 0o777).toString(8)]))

  it('and the folders made for them are for their owner only, whatever the umask', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, {
      env: { DATABASE_URL: 'sqlite:new/deeper/pets.db' },
      wrap: ['sh', '-c', 'umask 000; exec "$0" "$@"'],
    })
    assert.deepEqual(modes(folder.path), { new: '700' })
    assert.deepEqual(modes(folder.at('new')), { deeper: '700' })
    assert.deepEqual(modes(folder.at('new/deeper')), {
      'pets.db': '600',
      'pets.db-shm': '600',
      'pets.db-wal': '600',
    })
    assert.deepEqual(
      served.lines.map(({ msg }) => msg),
      ['listening'],
    )
  })

  it('keep the mode that somebody has given them, with a warning', async () => {
    await using folder = await Folder.create()
    const place = folder.at('shared')
    mkdirSync(place)
    chmodSync(place, 0o755)
    const path = await madeDatabase(folder, 'shared/pets.db')
    chmodSync(path, 0o640)
    const served = await serve(folder, { env: { DATABASE_URL: `sqlite:${path}` } })
    const warnings = served.lines.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg))
    assert.deepEqual(warnings, [
      `Other users of this machine can read ${place}; its mode is 755. If only the service uses it: chmod go= ${place}`,
      `Other users of this machine can read ${path}; its mode is 640. If only the service uses it: chmod go= ${path}`,
    ])
    const { stderr } = await folder.runInProcess(['migrate', '--database', `sqlite:${path}`])
    assert.equal(stderr, [`${path} was up to date.`, ...warnings.map((text) => `Warning: ${text}`), ''].join('\n'))
    const told = async () => (await folder.commands.json(`migrate --database sqlite:${path}`))['warnings']
    assert.deepEqual(await told(), warnings)
    assert.deepEqual(modes(folder.path), { shared: '755' })
    assert.equal(modes(place)['pets.db'], '640')
    // Others may pass through the folder and read nothing.
    chmodSync(place, 0o711)
    chmodSync(path, 0o600)
    assert.deepEqual(await told(), [])
  })
})

describe('A full disk', { concurrency: 3 }, () => {
  it('is a 503 while serving, with nothing damaged and nothing acknowledged lost', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    // No file may grow past this: for SQLite the same as a disk without room.
    const { url, child, ended } = await serve(folder, { wrap: ['prlimit', '--fsize=600000'] })
    const { add, list } = callsTo(url, key)
    const large = JSON.stringify({ name: 'x'.repeat(255), categoryId: 1 })
    let acknowledged = 0
    let refusal: Response | undefined
    while (refusal === undefined) {
      assert.ok(acknowledged < 10_000, 'the file does not grow past the limit')
      const responses = await Promise.all(Array.from({ length: 50 }, () => add(large)))
      acknowledged += responses.filter(({ status }) => status === 201).length
      refusal = responses.find(({ status }) => status !== 201)
    }
    await expectUnavailable(refusal)
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    assert.equal((await list()).status, 200, 'reading goes on')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
    assert.equal(animalsIn(folder.at('data/petstore.db')), acknowledged)
    const again = callsTo((await serve(folder)).url, key)
    assert.equal((await again.add()).status, 201, 'with room again it goes on')
  })

  it('at a restart is waited for: the service is live, says what is wrong, and serves when there is room again', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    // Not even the -shm file fits, without which SQLite reads nothing.
    const { url, child, lines, ended } = await serve(folder, { wrap: ['prlimit', '--fsize=8192:unlimited'] })
    const { add, list } = callsTo(url, key)
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    for (const answer of [await list(), await add()]) await expectUnavailable(answer)
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    assert.match(String(lines[0]?.['reason']), /the disk is full/)
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'])
    await until(async () => (await fetch(`${url}/readyz`)).ok, 'it is ready')
    assert.equal((await list()).status, 200)
    assert.equal((await add()).status, 201)
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
  })

  it('is a clear message at the start', async () => {
    await using folder = await Folder.create()
    const { code, stderr } = await folder.run(['migrate'], { wrap: ['prlimit', '--fsize=8192'] })
    assert.equal(code, 1)
    assert.match(stderr, /^petstore: Cannot open the database \/.*data\/petstore\.db: .*(?:disk|full)/)
    assert.deepEqual(readdirSync(folder.at('data')), [], 'no part of a store is left')
  })
})

describe('A lock of another process', () => {
  it('is waited for outside SQLite: reads go on, writes get 503 after some seconds, and all recovers', async () => {
    await using folder = await Folder.create()
    const path = await madeDatabase(folder, 'locked.db')
    await using petstore = await startPetstore({ database: `sqlite:${path}` })
    const script = `const db = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(path)})
      db.exec('BEGIN IMMEDIATE')
      console.log('locked')
      process.stdin.on('end', () => db.exec('ROLLBACK')).resume()`
    const holder = spawn(process.execPath, ['-e', script])
    const holderEnded = collect(holder)
    await once(holder.stdout, 'data')

    const started = performance.now()
    const writes = Array.from({ length: 5 }, () => petstore.add(REX, { 'Idempotency-Key': 'one' }))
    let slowest = 0
    for (let asked = 0; asked < 20; asked += 1) {
      const before = performance.now()
      assert.equal((await petstore.call('/pets')).status, 200)
      slowest = Math.max(slowest, performance.now() - before)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // A wait in SQLite would hold it up for 3 s.
    assert.ok(slowest < 2500, `a read took ${slowest} ms`)
    for (const response of await Promise.all(writes)) await expectUnavailable(response)
    const waited = performance.now() - started
    assert.ok(waited > 2000 && waited < 9000, `refused after ${waited} ms`)
    assert.equal((await fetch(`${petstore.url}/readyz`)).status, 200)

    const patient = petstore.add(REX, { 'Idempotency-Key': 'one' })
    await new Promise((resolve) => setTimeout(resolve, 200))
    holder.stdin.end()
    assert.equal((await patient).status, 201, 'a write that waits goes through when the lock ends')
    assert.equal((await holderEnded).code, 0)
    assert.equal(await countPets(petstore), 1, 'and what was refused was not stored')
  })

  it('is waited for at the start: it may be another one that starts', async () => {
    await using folder = await Folder.create()
    const path = await madeDatabase(folder, 'starting.db')
    using db = new DatabaseSync(path)
    db.exec('PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE')
    const starting = folder.run(['migrate', '--database', `sqlite:${path}`, '--environment', 'staging'])
    await Promise.race([starting, new Promise((resolve) => setTimeout(resolve, 2000))])
    db.exec('ROLLBACK')
    const { code, stderr } = await starting
    assert.deepEqual([code, stderr], [0, `${path} was up to date.\n`])
  })

  it('is a clear message of a command that can not write meanwhile', async () => {
    await using folder = await Folder.create()
    const path = await madeDatabase(folder, 'locked.db')
    using db = new DatabaseSync(path)
    db.exec('BEGIN IMMEDIATE')
    const { code, stdout, stderr } = await folder.run(['seed', '--count', '1', '--database', `sqlite:${path}`])
    assert.deepEqual(
      [code, stdout, stderr],
      [1, '', 'petstore: another process holds its lock (SQLite: database is locked)\n'],
    )
  })
})
