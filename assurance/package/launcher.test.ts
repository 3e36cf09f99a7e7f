// bin/petstore.js, started by a Node.js that is too old for the service, or by none that can run it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { collect } from '../../test/harness/programs/processes.ts'
import { until } from '../../test/harness/until.ts'
import { Folder, makeKeyByProgram, serve, type Served } from '../../test/harness/programs/command.ts'
import { installNode, NODE_PACKAGE, processes, ROOT } from './old-node.ts'

const LAUNCHER = join(ROOT, 'bin/petstore.js')
const hasStopped = ({ lines }: Served) => lines.some(({ msg }) => msg === 'stopped')
const NURSERY = '--max-semi-space-size=8'

describe('petstore on Node.js 20', () => {
  const home = mkdtempSync(join(tmpdir(), 'petstore-node-20-'))
  let node20: string
  const newFolder = () => Folder.create([join(node20, 'node'), LAUNCHER])
  before(() => {
    node20 = installNode(20, home)
  })
  after(() => rmSync(home, { recursive: true }))

  it('passes words, input, output and exit codes through to the pinned Node.js', async () => {
    await using folder = await newFolder()
    assert.match((await makeKeyByProgram(folder)).key, /^pets_test_/)
    const wrong = await folder.run(['key', 'create'])
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /^petstore: Name the account/)
  })

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    it(`stops the service in order on ${signal}, and opens no debugger`, async () => {
      await using folder = await newFolder()
      const served = await serve(folder)
      served.child.kill('SIGUSR1')
      served.child.kill(signal)
      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr, hasStopped(served)], [0, '', true])
    })
  }

  it('ends with 128 and the number of the signal that killed the service', async () => {
    await using folder = await newFolder()
    const served = await serve(folder)
    const service = processes().find(({ parent }) => parent === served.child.pid)!
    assert.ok(service.words.includes(NURSERY), service.words)
    process.kill(service.pid, 'SIGKILL')
    assert.equal((await served.ended).code, 137)
  })

  it('leaves no service behind when it is killed itself', async () => {
    await using folder = await newFolder()
    const served = await serve(folder)
    const service = processes().find(({ parent }) => parent === served.child.pid)!
    served.child.kill('SIGKILL')
    // Its output ends with the last process that holds it.
    await served.ended
    assert.ok(hasStopped(served))
    await until(() => processes().every(({ pid }) => pid !== service.pid))
  })

  // script(1) of other systems takes other words.
  if (process.platform === 'linux')
    it('has the terminal, where Ctrl-C stops the service in order', async () => {
      await using folder = await newFolder()
      const child = spawn(
        'script',
        ['--quiet', '--return', '--command', `exec ${join(node20, 'node')} ${LAUNCHER} serve`, '/dev/null'],
        {
          cwd: folder.path,
          env: { PATH: process.env['PATH'], TERM: 'xterm', PORT: '0' },
        },
      )
      const ended = collect(child)
      child.stdout.on('data', (text: Buffer) => {
        if (text.includes('Get a key')) child.stdin.write('\u0003')
      })
      const { code, stdout } = await ended
      assert.equal(code, 0, stdout)
      assert.ok(stdout.includes('\u001B[36mAPI') && stdout.includes('notice  stopped'), stdout)
    })

  describe('says in one line what to do', () => {
    /** A checkout whose node_modules hold this file as the pinned Node.js, or nothing. */
    function checkoutWith(node?: Buffer, within = home): string {
      const root = mkdtempSync(join(within, 'checkout-'))
      cpSync(join(ROOT, 'bin'), join(root, 'bin'), { recursive: true })
      cpSync(join(ROOT, 'package.json'), join(root, 'package.json'))
      if (node === undefined) return root
      const place = join(root, 'node_modules', NODE_PACKAGE)
      mkdirSync(join(place, 'bin'), { recursive: true })
      cpSync(join(ROOT, 'node_modules', NODE_PACKAGE, 'package.json'), join(place, 'package.json'))
      writeFileSync(join(place, 'bin/node'), node, { mode: 0o755 })
      return root
    }

    /** Runs it both ways: the launcher itself, and the script of a checkout. */
    async function refuses(root: string, message: RegExp): Promise<void> {
      const path = `PATH=${node20}:/usr/bin:/bin`
      for (const program of [
        [join(node20, 'node'), join(root, 'bin/petstore.js')],
        ['env', path, join(root, 'bin/petstore')],
      ]) {
        await using folder = await Folder.create(program)
        const { code, stdout, stderr } = await folder.run(['serve'])
        assert.deepEqual([code, stdout], [1, ''])
        assert.match(stderr, message)
      }
    }

    const missing =
      /^petstore: Node\.js (26\.\d+\.\d+) or later is needed, this is 20\.\d+\.\d+, and the package node-\S+@\1 is missing: install again without --omit=optional, or install a newer Node\.js\.\n$/

    it('in a checkout where nothing is installed yet', async () => {
      const root = checkoutWith()
      mkdirSync(join(root, 'src'))
      writeFileSync(join(root, 'src/main.ts'), '')
      await refuses(root, /^petstore: Nothing is installed yet\. Run this first: npm ci\n$/)
    })

    it('where the pinned Node.js was not installed', async (test) => {
      const elsewhere = mkdtempSync(join(tmpdir(), 'petstore-elsewhere-'))
      test.after(() => rmSync(elsewhere, { recursive: true }))
      await refuses(checkoutWith(undefined, elsewhere), missing)
    })

    it('where another version of it was installed in a folder above', () => refuses(checkoutWith(), missing))

    it('where the pinned Node.js cannot be started', async () => {
      await refuses(
        checkoutWith(Buffer.from('#!/nowhere/node\n')),
        /^petstore: \/\S+\/bin\/node cannot be started: .+\.\n$/,
      )
    })

    if (process.platform === 'linux')
      it('where libatomic is missing, as on a minimal Debian', async () => {
        // The real program, made to ask for a version of the library that nobody has.
        const node = readFileSync(process.execPath)
        const at = node.indexOf('libatomic.so.1\0')
        assert.notEqual(at, -1)
        node.write('libatomic.so.0', at)
        await refuses(
          checkoutWith(node),
          /^petstore: The library libatomic is missing, .* apt-get install libatomic1 .*\n$/,
        )
      })
  })
})

describe('petstore on the pinned Node.js', () => {
  it('runs in the process that was started, and with its flag', async () => {
    await using folder = await Folder.create([process.execPath, LAUNCHER])
    const served = await serve(folder)
    const [service, ...others] = processes().filter(({ pid, parent }) => [pid, parent].includes(served.child.pid!))
    assert.deepEqual(others, [])
    assert.ok(service!.words.includes(`${NURSERY} --disable-sigusr1`), service!.words)
    served.child.kill('SIGTERM')
    assert.equal((await served.ended).code, 0)
  })

  it('starts with npm start, and stops in order on Ctrl-C, which reaches npm as well', async () => {
    const env = { PATH: process.env['PATH'], PORT: '0', DATABASE_URL: 'sqlite::memory:' }
    const child = spawn('npm', ['start', '--silent'], { cwd: ROOT, env, detached: true })
    child.stdout.on('data', (text: Buffer) => {
      if (text.includes('"listening"')) process.kill(-child.pid!, 'SIGINT')
    })
    const { stdout, stderr } = await collect(child)
    assert.match(stdout, /"stopped"/, stderr)
  })
})
