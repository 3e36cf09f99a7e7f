// npm run build:executables [-- PLATFORM…]: makes executables/petstore-VERSION-PLATFORM, each with Node.js, the program and its
// files in it, from the build that the npm package is made of. Without a platform, for all of them.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as bundle } from 'esbuild'
import packageJson from '../package.json' with { type: 'json' }
import lock from '../package-lock.json' with { type: 'json' }
import { WORKER_ARGUMENT } from '../src/workers/channel.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const EXECUTABLES = join(ROOT, 'executables')
const CACHE = join(ROOT, 'node_modules/.cache')
const BUNDLE = 'petstore.js'
const HERE = `${process.platform}-${process.arch}`

/** The pinned packages that bring Node.js, by platform, such as `linux-x64`. */
const NODES = new Map(
  Object.entries(packageJson.optionalDependencies).map(([name, version]) => [
    name.replace(/^node-(?:bin-)?/, ''),
    { name, version },
  ]),
)

const wanted = process.argv.length > 2 ? process.argv.slice(2) : [...NODES.keys()]
for (const platform of wanted)
  if (!NODES.has(platform)) {
    process.stderr.write(`The platform ${platform} is not one of ${[...NODES.keys()].join(', ')}.\n`)
    process.exit(2)
  }

if (!NODES.has(HERE)) {
  process.stderr.write(`They can be built on Linux and macOS, this is ${HERE}.\n`)
  process.exit(2)
}

mkdirSync(CACHE, { recursive: true })
const TEMPORARY = mkdtempSync(join(CACHE, 'executables-'))
const OUTPUT = join(TEMPORARY, 'output')
mkdirSync(OUTPUT)
process.once('exit', () => rmSync(TEMPORARY, { recursive: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' })
const packages = await bundleInto(join(TEMPORARY, BUNDLE))
const executables = wanted.map(build)
const notes = {
  'LICENSES.txt': licences(packages),
  'sbom.json': execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: ROOT, maxBuffer: 2 ** 26 }),
}
for (const [name, content] of Object.entries(notes)) writeFileSync(join(OUTPUT, name), content)
const sums = [...executables, ...Object.keys(notes)].map(
  (name) => `${hash('sha256', readFileSync(join(OUTPUT, name)))}  ${name}\n`,
)
writeFileSync(join(OUTPUT, 'SHA256SUMS'), sums.join(''))
// Only now, so that a build that fails leaves the files of the last one.
rmSync(EXECUTABLES, { recursive: true, force: true })
renameSync(OUTPUT, EXECUTABLES)

/** Puts the program and the packages that it uses into one file; returns the folders of those packages. */
async function bundleInto(file: string): Promise<string[]> {
  const { metafile } = await bundle({
    absWorkingDir: ROOT,
    // A worker is the same file, called by the first process.
    stdin: {
      contents: `await (process.argv[2] === '${WORKER_ARGUMENT}' && process.connected ? import('./dist/worker.js') : import('./dist/main.js'))`,
      resolveDir: ROOT,
    },
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    metafile: true,
    // Packages that are CommonJS modules load parts of Node.js by it.
    banner: { js: `const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);` },
  })
  const folders = Object.keys(metafile.inputs).flatMap(
    (path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  )
  return [...new Set(folders)].toSorted().map((folder) => join(ROOT, folder))
}

/** Makes the executable of a platform; returns its file name. */
function build(platform: string): string {
  const name = `petstore-${packageJson.version}-${platform}${platform.startsWith('win') ? '.exe' : ''}`
  const config = join(TEMPORARY, `${platform}.json`)
  const settings = {
    // Relative, because it becomes part of the executable, which must not differ with the folder of the build.
    main: BUNDLE,
    mainFormat: 'module',
    executable: nodeFor(platform),
    output: join(OUTPUT, name),
    disableExperimentalSEAWarning: true,
    // A cache of compiled code would save 30 ms of a start, but differs with every build.
    useCodeCache: false,
    // As in bin/petstore.js. Node.js takes no other options: NODE_OPTIONS and arguments like --inspect are not for it.
    execArgv: ['--max-semi-space-size=8', '--disable-sigusr1'],
    execArgvExtension: 'none',
    assets: Object.fromEntries(ownFiles().map((path) => [path, join(ROOT, 'dist', path)])),
  }
  writeFileSync(config, JSON.stringify(settings))
  execFileSync(process.execPath, ['--build-sea', config], { cwd: TEMPORARY, stdio: ['ignore', 'ignore', 'inherit'] })
  process.stdout.write(`executables/${name}: ${Math.round(statSync(join(OUTPUT, name)).size / 1e6)} MB\n`)
  return name
}

/** The files beside the code, by the paths that src/own-files.ts reads. */
function ownFiles(): string[] {
  return readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.ts'))
    .map(({ parentPath, name }) => relative(join(ROOT, 'src'), join(parentPath, name)).replaceAll('\\', '/'))
    .toSorted()
}

/** Fetches the Node.js of a platform from npm, checks it against the lock file, and returns the path of the program. */
function nodeFor(platform: string): string {
  const { name, version } = NODES.get(platform)!
  const folder = join(TEMPORARY, platform)
  mkdirSync(folder)
  const words = ['pack', '--loglevel=error', '--pack-destination', folder, `${name}@${version}`]
  const file = join(folder, execFileSync('npm', words, { encoding: 'utf8' }).trim())
  const expected = (lock.packages as Record<string, { integrity?: string }>)[`node_modules/${name}`]?.integrity
  const integrity = `sha512-${hash('sha512', readFileSync(file), 'base64')}`
  if (integrity !== expected) throw new Error(`${name}@${version} has ${integrity}, the lock file says ${expected}`)
  execFileSync('tar', ['-xzf', file, '-C', folder])
  return join(folder, 'package/bin', platform.startsWith('win') ? 'node.exe' : 'node')
}

/** The licences of all that an executable holds. */
function licences(bundled: readonly string[]): string {
  const node = join(ROOT, 'node_modules', NODES.get(HERE)!.name)
  const others = [ROOT, ...bundled, join(ROOT, 'src/console/vendor/scalar')].map((folder) => licenceOf(folder))
  return [...others, licenceOf(node, 'Node.js')].join('\n\n')
}

function licenceOf(folder: string, title?: string): string {
  const description = join(folder, 'package.json')
  const { name, version, license } = JSON.parse(existsSync(description) ? readFileSync(description, 'utf8') : '{}') as {
    name?: string
    version?: string
    license?: string
  }
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
  const what = title ?? name ?? relative(ROOT, folder)
  const text = file === undefined ? `${license}, see its README.md` : readFileSync(join(folder, file), 'utf8').trim()
  return `=== ${what} ${version ?? ''}\n\n${text}\n`
}
