// What npm run mutants changes, and the tests that should notice.
export interface MutatedFolder {
  name: string
  mutate: readonly string[]
  tests: readonly string[]
  /** The engine whose tests run; SQLite, which is the faster one, if it is left out. */
  engine?: 'PostgreSQL' | 'both'
}

export const FOLDERS: readonly MutatedFolder[] = [
  {
    name: 'contract',
    mutate: ['src/contract/{int64,json,list-query,pet-csv,pets,redact,shell-word}.ts'],
    tests: [
      'src/contract/*.test.ts',
      'src/cli/{csv-dialect,pet-rows}.test.ts',
      'test/spec-4-[12]*.test.ts',
      'test/{every-{field,filter},linear-work,openapi}.test.ts',
    ],
  },
  {
    name: 'openapi',
    mutate: ['src/contract/{errors,limits,openapi,operations}.ts'],
    tests: ['src/contract/*.test.ts', 'test/openapi.test.ts', 'test/spec-{7,9}-*.test.ts'],
  },
  {
    name: 'accounts',
    mutate: ['src/accounts/*.ts'],
    tests: [
      'src/accounts/*.test.ts',
      'test/{chores,console-{activity,forms,sessions,throttles},old-passwords,spec-5-authentication}.test.ts',
    ],
  },
  {
    name: 'store',
    mutate: ['src/store/*.ts'],
    engine: 'both',
    tests: [
      'src/store/*.test.ts',
      'test/store*.test.ts',
      'test/{copy*,doctor,environments,every-field,idempotency,late-opening,many-instances}.test.ts',
      'test/{postgres-index-migration,search,unknown-tables,upgrades}.test.ts',
    ],
  },
  {
    name: 'sqlite',
    mutate: ['src/store/sqlite/*.ts'],
    tests: [
      'src/store/{,sqlite/}*.test.ts',
      'test/store*.test.ts',
      'test/{backup,database-file,disk-syncs,doctor,every-field,idempotency,late-opening,many-keys}.test.ts',
      'test/{same-file,search,unknown-tables,upgrades}.test.ts',
    ],
  },
  {
    name: 'postgres',
    mutate: ['src/store/postgres/*.ts'],
    engine: 'PostgreSQL',
    tests: [
      'src/store/postgres/*.test.ts',
      'test/store*.test.ts',
      'test/postgres-*.test.ts',
      'test/{database-away,doctor,every-{field,filter},late-opening,many-instances,many-keys,search}.test.ts',
      'test/{unknown-tables,upgrades}.test.ts',
    ],
  },
  {
    name: 'http',
    mutate: ['src/http/*.ts'],
    tests: [
      'src/http/*.test.ts',
      'test/spec-*.test.ts',
      'test/{browser-callers,conditional-requests,connection-limit,connections,cut-bodies,drain,early-answers}.test.ts',
      'test/{every-operation,framing,fresh-pages,fuzz,idempotency,late-faults,late-opening,log-lines}.test.ts',
      'test/{metrics,openapi,pipelining,rehearsed-failures,request-id,slow-clients,stalled-readers,stop,unstorable-text}.test.ts',
      'test/wall-clock.test.ts',
    ],
  },
  {
    name: 'console',
    mutate: ['src/console/*.ts'],
    tests: ['src/console/*.test.ts', 'test/{console-*,many-keys,page-requests}.test.ts'],
  },
  {
    name: 'cli',
    mutate: ['src/cli/*.ts'],
    tests: [
      'src/cli/*.test.ts',
      'test/{account-commands,backup,commands,completion,copy,disk-syncs,doctor,drain,environments}.test.ts',
      'test/{import,process,same-file,stop,typed-words,unknown-tables}.test.ts',
    ],
  },
  {
    name: 'process',
    // Not main.ts, which only processes of their own run.
    mutate: ['src/!(main).ts', 'src/workers/*.ts'],
    tests: [
      'src/*.test.ts',
      'src/workers/*.test.ts',
      'test/{chores,killed-workers,late-opening,log-lines,metrics,rehearsed-failures}.test.ts',
      'test/{start-without-database,stop,wall-clock,worker*}.test.ts',
    ],
  },
  {
    name: 'client',
    // Not contract.ts, which is generated: its test compares the text of the file.
    mutate: ['client/src/!(contract).ts'],
    tests: ['client/src/!(contract).test.ts', 'client/test/*.test.ts'],
  },
]
