/* For tests only: the ClickHouse library with the port at which replicas fetch parts from each other.
 *
 * libchdb starts no interserver port, so its replicated tables stay read-only. This program opens one in memory:
 *
 *     INTERSERVER_PORT=9009 interserver LIBCHDB --config-file config.xml --query "SYSTEM START LISTEN HTTP; ..."
 *
 * The configuration lists two hosts to listen on that are one address. ClickHouse then opens each port twice: the
 * second HTTP port gets the interserver handlers and INTERSERVER_PORT, the second native port one that nobody knows.
 *
 * All offsets are those of libchdb 26.7.3-stable.1 for x86-64. Each patched function is compared with what is known of
 * it first; any other build is refused with exit code 3. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANOTHER_BUILD = 3 };

/* From the library's beginning. */
enum {
  ENTRY = 0xf211700,            /* chdb_query_cmdline, which is exported: the beginning is found by it */
  GET_ADDRESS = 0x1417c9c0,     /* Context::getInterserverIOAddress */
  GET_CREDENTIALS = 0x1417c940, /* Context::getInterserverCredentials */
  ROOM = 0x1417c990,            /* padding behind it, long enough for a jump */
  CALL_OF_FACTORY = 0xf117ff6,  /* where the HTTP port asks for its handlers */
  FACTORY = 0x18395cc0,         /* createHandlerFactory */
  WITHOUT_CREDENTIALS = 0x183d5270, /* where the interserver port asks for the credentials, and is told none */
  SCHEME = 0x170,               /* of the string for http or https, in what a Context shares */
};

/* A std::string of libc++ that holds its text in itself: 23 bytes, the last of the 24 is its length. */
typedef struct { char text[23]; char length; } short_string;

static unsigned char *library;
static uint16_t interserver_port;

/* The pair of host and port that a replica registers under. It comes back through memory of the caller's. */
static void *address(char *result, void *context) {
  short_string *scheme = (short_string *)(*(char **)context + SCHEME);
  if (scheme->length == 0) {
    strcpy(scheme->text, "http");
    scheme->length = 4;
  }
  short_string *host = (short_string *)result;
  memset(result, 0, sizeof *host + 8);
  strcpy(host->text, "127.0.0.1");
  host->length = 9;
  memcpy(result + sizeof *host, &interserver_port, sizeof interserver_port);
  return result;
}

/* InterserverCredentials: a user and a password, and a std::set of the pairs that are accepted. All are empty. */
static struct { void *left, *right, *parent; char black, padding[7]; short_string user, password; } accepted;
static struct { short_string user, password; void *begin, *root; size_t size; char more[128]; } nobody;
typedef struct { void *object, *owner; } shared_pointer;

static shared_pointer credentials(void *context) {
  (void)context;
  int is_the_port = (unsigned char *)__builtin_return_address(0) == library + WITHOUT_CREDENTIALS;
  return (shared_pointer){is_the_port ? NULL : &nobody, NULL};
}

typedef shared_pointer factory_function(void *, void *, void *, void *, void *, void *);

static shared_pointer factory(void *server, void *config, void *metrics, void *name, void *more, void *rest) {
  static int calls;
  static char interserver[] = "InterserverIOHTTPHandler-factory";
  /* A std::string of libc++ whose text lies elsewhere: the highest bit of its capacity says so. */
  struct { char *text; size_t length, capacity; } long_string = {interserver, sizeof interserver - 1, 40ul | 1ul << 63};
  return ((factory_function *)(library + FACTORY))(server, config, metrics, calls++ ? (void *)&long_string : name, more, rest);
}

/* Stands before the one of libc: the library's listeners are bound by it. */
int bind(int socket, const struct sockaddr *at, socklen_t length) {
  static unsigned char is_taken[65536];
  static int moved;
  struct sockaddr_in changed;
  if (interserver_port && at->sa_family == AF_INET && length == sizeof changed) {
    memcpy(&changed, at, length);
    if (is_taken[ntohs(changed.sin_port)]++) changed.sin_port = htons(moved++ ? 0 : interserver_port);
    at = (const struct sockaddr *)&changed;
  }
  return (int)syscall(SYS_bind, socket, at, length);
}

static void refuse(void) {
  fputs("this is another libchdb than the one whose functions are known: it is not patched\n", stderr);
  exit(ANOTHER_BUILD);
}

static void unlock(unsigned char *code) {
  void *page = (void *)((uintptr_t)code & ~4095ul);
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) { perror("mprotect"); exit(1); }
}

/* Puts a jump to `target` in place of code that begins as `known`. */
static void replace(size_t offset, void *target, const char *known, size_t known_bytes) {
  static const unsigned char load_rax[] = {0x48, 0xb8}, jump_to_rax[] = {0xff, 0xe0};
  unsigned char *code = library + offset;
  if (memcmp(code, known, known_bytes)) refuse();
  unlock(code);
  memcpy(code, load_rax, 2);
  memcpy(code + 2, &target, 8);
  memcpy(code + 10, jump_to_rax, 2);
}

static void open_interserver_port(unsigned char *entry) {
  library = entry - ENTRY;
  unsigned char *call = library + CALL_OF_FACTORY;
  if (*call != 0xe8) refuse();
  nobody.begin = nobody.root = &accepted;
  nobody.size = 1;
  accepted.parent = &nobody.root;
  accepted.black = 1;
  replace(GET_ADDRESS, (void *)address, "\x41\x56\x53\x48\x83\xec\x48", 7);
  replace(GET_CREDENTIALS, (void *)credentials, "\x41\x57\x41\x56\x53", 5);
  /* A call reaches 2 GB only, and our function is further away: it goes by a jump that lies near. */
  replace(ROOM, (void *)factory, "\xcc\xcc\xcc\xcc", 4);
  int32_t distance = (int32_t)(ROOM - (CALL_OF_FACTORY + 5));
  unlock(call);
  memcpy(call + 1, &distance, sizeof distance);
}

int main(int count, char **arguments) {
  void *handle = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!handle) { fprintf(stderr, "no library: %s\n", count > 1 ? dlerror() : "name one"); return 1; }
  void *(*run)(int, char **) = (void *(*)(int, char **))dlsym(handle, "chdb_query_cmdline");
  const char *(*error)(void *) = (const char *(*)(void *))dlsym(handle, "chdb_result_error");
  if (!run || !error) refuse();
  const char *port = getenv("INTERSERVER_PORT");
  interserver_port = (uint16_t)(port ? atoi(port) : 0);
  if (interserver_port) open_interserver_port((unsigned char *)run);
  arguments[1] = "clickhouse";
  void *result = run(count - 1, arguments + 1);
  if (result && error(result)) { fprintf(stderr, "%s\n", error(result)); return 1; }
  return 0;
}
