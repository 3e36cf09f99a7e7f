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
    mutate: ['src/contract/{int64,json,list-query,pet-csv,pets,text/redact,text/shell-word}.ts'],
    tests: [
      'src/contract/**/*.test.ts',
      'src/pet-files/{csv-dialect,pet-rows}.test.ts',
      'test/spec/4-[12]*.test.ts',
      'test/api/{every-{field,filter},linear-work,openapi}.test.ts',
    ],
  },
  {
    name: 'openapi',
    mutate: ['src/contract/{errors,limits,openapi,operations}.ts'],
    tests: ['src/contract/**/*.test.ts', 'test/api/openapi.test.ts', 'test/spec/{7,9}-*.test.ts'],
  },
  {
    name: 'accounts',
    mutate: ['src/accounts/*.ts'],
    tests: [
      'src/accounts/*.test.ts',
      'test/console/{activity,forms,sessions,throttles}.test.ts',
      'test/{accounts/old-passwords,spec/5-authentication,store/chores}.test.ts',
    ],
  },
  {
    name: 'store',
    mutate: ['src/store/{,database/,opening/}*.ts'],
    engine: 'both',
    tests: [
      'src/store/{,database/,opening/}*.test.ts',
      'test/store/{store,bulk,edges,imports,version,environments,late-opening,many-instances,search}.test.ts',
      'test/{commands/{copy,doctor},api/{every-field,idempotency}}.test.ts',
      'test/{postgres/index-migration,upgrades/{copy-schema,unknown-tables,upgrades}}.test.ts',
    ],
  },
  {
    name: 'sqlite',
    mutate: ['src/store/sqlite/{,transactions/}*.ts'],
    tests: [
      'src/store/{,database/,opening/,sqlite/**/}*.test.ts',
      'test/store/{store,bulk,edges,imports,version,late-opening,search}.test.ts',
      'test/sqlite/*.test.ts',
      'test/{commands/doctor,api/{every-field,idempotency},accounts/many-keys}.test.ts',
      'test/upgrades/{unknown-tables,upgrades}.test.ts',
    ],
  },
  {
    name: 'postgres',
    mutate: ['src/store/postgres/{,pool/}*.ts'],
    engine: 'PostgreSQL',
    tests: [
      'src/store/postgres/**/*.test.ts',
      'test/store/{store,bulk,edges,imports,version,late-opening,many-instances,search}.test.ts',
      'test/postgres/!(distribution|start-without-database).test.ts',
      'test/{commands/doctor,api/every-{field,filter},accounts/many-keys}.test.ts',
      'test/upgrades/{unknown-tables,upgrades}.test.ts',
    ],
  },
  {
    name: 'http',
    mutate: ['src/http/**/*.ts'],
    tests: [
      'src/http/**/*.test.ts',
      'test/spec/*.test.ts',
      'test/connections/!(page-requests).test.ts',
      'test/api/{browser-callers,conditional-requests,every-operation,fresh-pages,idempotency,openapi}.test.ts',
      'test/api/{rehearsed-failures,request-id,unstorable-text}.test.ts',
      'test/{operator/{log-lines,metrics},processes/{drain,stop,wall-clock},store/late-opening}.test.ts',
    ],
  },
  {
    name: 'console',
    mutate: ['src/console/**/*.ts'],
    tests: [
      'src/console/**/*.test.ts',
      'test/console/*.test.ts',
      'test/{accounts/many-keys,connections/page-requests}.test.ts',
    ],
  },
  {
    name: 'cli',
    mutate: ['src/{cli,pet-files}/**/*.ts'],
    tests: [
      'src/{cli,pet-files}/*.test.ts',
      'test/commands/{commands,copy,doctor,import,typed-words}.test.ts',
      'test/{accounts/account-commands,sqlite/{backup,disk-syncs,same-file},store/environments}.test.ts',
      'test/{processes/{drain,process,stop},upgrades/unknown-tables}.test.ts',
    ],
  },
  {
    name: 'process',
    // Not main.ts, which only processes of their own run.
    mutate: ['src/!(main).ts', 'src/workers/*.ts'],
    tests: [
      'src/*.test.ts',
      'src/workers/*.test.ts',
      'test/processes/{killed-workers,stop,wall-clock,worker*}.test.ts',
      'test/{api/rehearsed-failures,operator/{log-lines,metrics},postgres/start-without-database}.test.ts',
      'test/store/{chores,late-opening}.test.ts',
    ],
  },
  {
    name: 'client',
    // Not contract.ts, which is generated: its test compares the text of the file.
    mutate: ['client/src/!(contract).ts'],
    tests: ['client/src/!(contract).test.ts', 'client/test/*.test.ts'],
  },
]
