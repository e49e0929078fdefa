from windrow_server import main

main()
