// Who added, changed and removed animals.

/** When and by whom an animal was added. Operations, files and fingerprints do not have it. */
export interface Addition {
  at: number
  /** The id of a key (`key_…`) or of an account in the console (`acct_…`); undefined for a file that was imported. */
  by: string | undefined
}
