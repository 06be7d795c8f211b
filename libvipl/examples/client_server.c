/* A server that answers one client.
 *   cc client_server.c $(pkg-config --cflags --libs vipl) -o client_server
 *   client_server NIC           the server; viaduct-info prints the names of NICs
 *   client_server NIC HOST      the client, here or elsewhere; HOST is the server's
 * Both in a guest, without RDMA hardware:
 *   viaduct-vm sh -c './client_server nic1 & ./client_server nic0 host2; wait'
 */
#include "example.h"

int main(int argc, char** argv) {
  struct station s;
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: client_server NIC [HOST]\n");
    return 2;
  }
  s = open_station(argv[1], VIP_FALSE);
  /* Before connecting: the other side may send as soon as it is connected, and a message that meets
   * no posted receive breaks the connection. */
  post_receive(&s, 0);
  if (argc == 2) {
    serve(&s, "greeting");
    printf("the client says: %s\n", receive_text(&s));
    send_text(&s, 1, "hello, client");
  } else {
    call(&s, argv[2], "greeting");
    send_text(&s, 1, "hello, server");
    printf("the server says: %s\n", receive_text(&s));
  }
  /* Returns when everything is given back. The other side sees its VI in the state Error. */
  close_station(&s);
  return 0;
}
