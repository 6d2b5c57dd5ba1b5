/* A module without sources yet. */
typedef int sinter_empty;
