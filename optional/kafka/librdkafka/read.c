/* librdkafka alone: `read BROKER TOPIC MESSAGES fill:BYTES:CODEC` fills a topic of 4 partitions with rows of JSON,
 * `read BROKER TOPIC MESSAGES read [NAME=VALUE...]` reads it without a group, looks at every payload and prints how
 * fast that was. Messages are taken many at a time, from one queue of all partitions. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PARTITIONS 4
#define AT_ONCE 10000

static char error[512];

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void fill(rd_kafka_conf_t *conf, const char *topic, long messages, int bytes, const char *codec) {
    set(conf, "compression.type", codec);
    set(conf, "linger.ms", "20");
    set(conf, "queue.buffering.max.messages", "400000");
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    rd_kafka_topic_t *made = rd_kafka_topic_new(client, topic, NULL);
    char *value = malloc(bytes + 256);
    for (long i = 0; i < messages; i++) {
        int length = sprintf(value, "{\"id\":%ld,\"title\":\"Show %ld\",\"views\":%ld}", i, i * 104729 % 1000, i % 9);
        if (length < bytes) memset(value + length, ' ', bytes - length);
        while (rd_kafka_produce(made, i % PARTITIONS, RD_KAFKA_MSG_F_COPY, value, bytes, NULL, 0, NULL) == -1)
            rd_kafka_poll(client, 10);
    }
    rd_kafka_flush(client, 120000);
}

static void read_all(rd_kafka_conf_t *conf, const char *topic, long messages) {
    static rd_kafka_message_t *taken[AT_ONCE];
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    rd_kafka_topic_t *known = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    long found = 0, sum = 0;
    double began = 0;
    for (int partition = 0; partition < PARTITIONS; partition++)
        rd_kafka_consume_start_queue(known, partition, RD_KAFKA_OFFSET_BEGINNING, queue);
    while (found < messages) {
        ssize_t count = rd_kafka_consume_batch_queue(queue, 20, taken, AT_ONCE);
        if (count > 0 && !began) began = now();
        for (ssize_t i = 0; i < count; i++, found++) {
            if (taken[i]->err) exit(1);
            sum += rd_kafka_message_timestamp(taken[i], NULL) & 1;
            for (size_t at = 0; at < taken[i]->len; at += 16) sum += ((char *)taken[i]->payload)[at];
            rd_kafka_message_destroy(taken[i]);
        }
    }
    double seconds = now() - began;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("librdkafka %s: %.2f M messages/s, %.2f CPU s for a million, at most %ld MB (%ld)\n", rd_kafka_version_str(),
           found / seconds / 1e6, cpu / found * 1e6, used.ru_maxrss / 1024, sum & 1);
}

int main(int count, char **words) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    int bytes;
    char codec[32];
    set(conf, "bootstrap.servers", words[1]);
    if (sscanf(words[4], "fill:%d:%31s", &bytes, codec) == 2) {
        fill(conf, words[2], atol(words[3]), bytes, codec);
        return 0;
    }
    set(conf, "check.crcs", "true");
    set(conf, "fetch.queue.backoff.ms", "1");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    for (int i = 5; i < count; i++) {
        char *value = strchr(words[i], '=');
        *value = 0;
        set(conf, words[i], value + 1);
    }
    read_all(conf, words[2], atol(words[3]));
    return 0;
}
