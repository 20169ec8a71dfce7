/**
 * The master key of a data directory (32 bytes), made on the first call and kept in `<dataDir>/master.key` (0600). The
 * data lock must be held. Throws when the file is not such a key: a new one would make every sealed secret unreadable.
 */
export declare function loadOrCreateMasterKey(dataDir: string): Promise<Buffer>;
